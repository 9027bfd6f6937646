// Runs code on the device in two ways, which are all that our own kernels need:
//
//   for_each   f(i, arguments...) for every i, in any order: each i writes what no other touches
//   fold       per channel, many parts merged into one value in a fixed tree, and handed to `finish`
//
// Passes that read and write whole arrays use framework/cuda/passes.h; sums over pixels use
// layers/cuda/sums.h.
//
// There are no atomics on numbers and no order that depends on scheduling, so equal inputs give equal bits.
// Compiled by nvcc, the calls launch on a stream. Compiled by a host compiler, the same calls are loops with
// the same order of arithmetic: tests run every kernel of layers/cuda that way on machines without a device.
// Tests also run launches on an emulated device (tests/layers/emulated).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "framework/cuda/resources.h"
#include "framework/error.h"

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "framework/cuda/check.h"
#include "framework/cuda/start_kernel.h"
#define ANTICHAIN_DEVICE __device__
#define ANTICHAIN_ANYWHERE __host__ __device__
#define ANTICHAIN_UNROLL _Pragma("unroll")
#else
#define ANTICHAIN_DEVICE
#define ANTICHAIN_ANYWHERE
#define ANTICHAIN_UNROLL
#endif

namespace antichain::cuda {

using Index =
    uint32_t;  // divides three times as fast as 64 bits, and no tensor of a micro-batch has 2^31 elements

inline Index index_of(int64_t count) {
  ANTICHAIN_CHECK(count >= 0 && count < (int64_t(1) << 31), "kernels number at most 2^31 elements");
  return Index(count);
}

constexpr int lanes =
    32;  // of a fold: parts are shared among so many; each merges a run of them in order, then pairs merge

// Says which parts a lane of a fold merges: a run of them, in order.
struct LaneParts {
  Index parts, length;

  ANTICHAIN_ANYWHERE explicit LaneParts(Index all) : parts(all), length((all + lanes - 1) / lanes) {}

  ANTICHAIN_ANYWHERE bool used(Index lane) const { return lane * length < parts; }
  // load(part, channel) returns a Value.
  template <class Value, class Load>
  ANTICHAIN_DEVICE Value merged(Index lane, Index channel, const Load& load) const {
    const Index begin = lane * length, end = begin + length < parts ? begin + length : parts;
    Value value = load(begin, channel);
    for (Index part = begin + 1; part < end; ++part) value.merge(load(part, channel));
    return value;
  }
};

#ifdef __CUDACC__
#define ANTICHAIN_LAUNCHES
#elif defined(ANTICHAIN_EMULATED_DEVICE)
#define ANTICHAIN_LAUNCHES

template <class... Parameters, class... A>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Stream, const A&... arguments) {
  emulated::run_kernel(grid, block, [&] { kernel(arguments...); });
}
using std::min;

#endif

#ifdef ANTICHAIN_LAUNCHES

template <class F, class... A>
__global__ void run_for_each(Index count, F f, A... arguments) {
  const Index i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) f(i, arguments...);
}

template <class Value, class Load, class Finish>
__global__ void __launch_bounds__(lanes* lanes)
    run_fold(Index parts, Index channels, const Load load, const Finish finish) {
  __shared__ Value of_lane[lanes][lanes];
  const Index channel = blockIdx.x * lanes + threadIdx.x;
  const LaneParts of(parts);
  if (channel < channels && of.used(threadIdx.y))
    of_lane[threadIdx.y][threadIdx.x] = of.template merged<Value>(threadIdx.y, channel, load);
  for (Index half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    const Index other = threadIdx.y + half;
    if (channel < channels && threadIdx.y < half && of.used(other))
      of_lane[threadIdx.y][threadIdx.x].merge(of_lane[other][threadIdx.x]);
  }
  if (channel < channels && threadIdx.y == 0) finish(channel, of_lane[0][threadIdx.x]);
}

template <class F, class... A>
void for_each(Stream stream, int64_t count, const F& f, const A&... arguments) {
  constexpr unsigned threads = 256;
  const Index n = index_of(count);
  if (n == 0) return;
  launch(run_for_each<F, A...>, (n + threads - 1) / threads, threads, stream, n, f, arguments...);
}

// load(part, channel) returns a Value; finish(channel, value) receives all of them merged. `parts` is at
// least 1.
template <class Value, class Load, class Finish>
void fold(Stream stream, int64_t parts, int64_t channels, const Load& load, const Finish& finish) {
  const Index n = index_of(channels);
  launch(run_fold<Value, Load, Finish>, (n + lanes - 1) / lanes, dim3(lanes, lanes), stream, index_of(parts),
         n, load, finish);
}

#else

template <class F, class... A>
void for_each(Stream, int64_t count, const F& f, const A&... arguments) {
  for (Index i = 0; i < index_of(count); ++i) f(i, arguments...);
}

template <class Value, class Load, class Finish>
void fold(Stream, int64_t count, int64_t channels, const Load& load, const Finish& finish) {
  const LaneParts of(index_of(count));
  for (Index channel = 0; channel < index_of(channels); ++channel) {
    Value of_lane[lanes] = {};
    for (Index lane = 0; lane < lanes && of.used(lane); ++lane)
      of_lane[lane] = of.template merged<Value>(lane, channel, load);
    for (Index half = lanes / 2; half > 0; half /= 2)
      for (Index lane = 0; lane < half && of.used(lane + half); ++lane)
        of_lane[lane].merge(of_lane[lane + half]);
    finish(channel, of_lane[0]);
  }
}

#endif

}  // namespace antichain::cuda
