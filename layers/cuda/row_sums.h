// Sums up rows of numbers that lie one behind the other, in packs (framework/cuda/arrays.h):
//
//   lanes   of a row, 32 threads: they share it eight numbers at a time
//   run     one lane's numbers: 16 terms in float32 and then on in double (layers/cuda/moments.h)
//   values  of a row's lanes are merged in a fixed tree
//
// Which lane adds what depends on the length alone, not on packs. So no bit depends on the arrays' addresses.
#pragma once

#include "framework/cuda/arrays.h"
#include "layers/cuda/sums.h"

namespace antichain::cuda {

constexpr Index lane_width = 8;  // numbers that a lane takes at a time: one pack, or more
constexpr int rows_of_block = 8;

struct RowLength {
  Index numbers;
  // Returns how many lanes have a number.
  ANTICHAIN_ANYWHERE Index used() const {
    const Index pieces = (numbers + lane_width - 1) / lane_width;
    return pieces < lanes ? pieces : Index(lanes);
  }
};

// Computes one lane's value of a row. f(run, first, numbers...) adds numbers to the run; `first` is true for
// the run's first ones.
template <int width, class Run, class F, class... A>
ANTICHAIN_DEVICE typename Run::Value take_lane(const RowLength& length, Index row, Index lane, const F& f,
                                               const A&... arrays) {
  Run run;
  Index taken = 0;
  for (Index piece = lane * lane_width; piece < length.numbers; piece += lanes * lane_width) {
    ANTICHAIN_UNROLL
    for (Index k = 0; k < lane_width; k += width) {
      if (piece + k >= length.numbers) break;
      Packs<width, A...> pack, column;
      column.template load<true>(piece + k, arrays...);
      pack.template load<false>(row * length.numbers + piece + k, arrays...);
      ANTICHAIN_UNROLL
      for (int j = 0; j < width; ++j) pack.apply(j, column, f, run, taken == 0 && j == 0);
      taken += width;
    }
    if (taken % chain == 0) run.carry();
  }
  run.carry();
  return run.value(taken);
}

#ifdef ANTICHAIN_LAUNCHES

template <int width, class Run, class F, class Finish, class... A>
__global__ void __launch_bounds__(lanes* rows_of_block)
    run_row_sums(Index rows, const RowLength length, const F f, const Finish finish, A... arrays) {
  __shared__ typename Run::Value values[rows_of_block][lanes];
  const Index row = blockIdx.x * rows_of_block + threadIdx.y, lane = threadIdx.x, used = length.used();
  if (row < rows && lane < used)
    values[threadIdx.y][lane] = take_lane<width, Run>(length, row, lane, f, arrays...);
  for (Index half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < rows && lane < half && lane + half < used)
      values[threadIdx.y][lane].merge(values[threadIdx.y][lane + half]);
  }
  if (row < rows && lane == 0) finish(row, values[threadIdx.y][0]);
}

template <int width, class Run, class F, class Finish, class... A>
void sum_row_packs(Stream stream, Index rows, const RowLength& length, const F& f, const Finish& finish,
                   const A&... arrays) {
  launch(run_row_sums<width, Run, F, Finish, A...>, dim3((rows + rows_of_block - 1) / rows_of_block),
         dim3(lanes, rows_of_block), stream, rows, length, f, finish, arrays...);
}

#else

template <int width, class Run, class F, class Finish, class... A>
void sum_row_packs(Stream, Index rows, const RowLength& length, const F& f, const Finish& finish,
                   const A&... arrays) {
  for (Index row = 0; row < rows; ++row) {
    typename Run::Value values[lanes] = {};
    for (Index lane = 0; lane < length.used(); ++lane)
      values[lane] = take_lane<width, Run>(length, row, lane, f, arrays...);
    for (Index half = lanes / 2; half > 0; half /= 2)
      for (Index lane = 0; lane < half && lane + half < length.used(); ++lane)
        values[lane].merge(values[lane + half]);
    finish(row, values[0]);
  }
}

#endif

// Calls finish(row, value) with the sums over each row of `length` numbers. f is as in take_lane.
template <class Run, class F, class Finish, class... A>
void sum_rows(Stream stream, int64_t rows, int64_t length, const F& f, const Finish& finish,
              const A&... arrays) {
  constexpr int width = pack_width<A...>();
  static_assert(lane_width % width == 0);
  index_of(rows * length);
  const RowLength of_row{index_of(length)};
  if (length % width == 0 && aligned<width>(arrays...))
    sum_row_packs<width, Run>(stream, index_of(rows), of_row, f, finish, arrays...);
  else
    sum_row_packs<1, Run>(stream, index_of(rows), of_row, f, finish, arrays...);
}

}  // namespace antichain::cuda
