// Multiplies matrices of float32 with the CPU's bits: each number is a sum in the order of the inner index
// (--fmad=false). A block computes a tile of 32 x 32 numbers of the product and reads both factors through
// shared memory, so each is read once for 32 products.
#pragma once

#include "framework/cuda/launch.h"

namespace antichain::cuda {

constexpr Index tile = 32;
constexpr Index side = 16;  // threads of a block along a tile, with two numbers each way

// The factors a (rows x inner) and b (inner x columns, or its transpose) lie row by row.
struct Factors32 {
  const float *a, *b;
  Index rows, inner, columns;
  bool b_is_transposed;

  ANTICHAIN_ANYWHERE float a_at(Index row, Index k) const {
    return row < rows && k < inner ? a[row * inner + k] : 0.0f;
  }
  ANTICHAIN_ANYWHERE float b_at(Index k, Index column) const {
    if (k >= inner || column >= columns) return 0;
    return b_is_transposed ? b[column * inner + k] : b[k * columns + column];
  }
};

#ifdef ANTICHAIN_LAUNCHES

template <class Finish>
__global__ void __launch_bounds__(side* side) run_product(const Factors32 of, const Finish finish) {
  __shared__ float of_a[tile][tile + 1], of_b[tile][tile + 1];
  const Index x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * tile, column = blockIdx.x * tile;
  float sums[2][2] = {};
  for (Index first = 0; first < of.inner; first += tile) {
    for (Index i = y; i < tile; i += side)
      for (Index j = x; j < tile; j += side) {  // neighbours read neighbours
        of_a[i][j] = of.a_at(row + i, first + j);
        if (of.b_is_transposed)
          of_b[j][i] = of.b_at(first + j, column + i);
        else
          of_b[i][j] = of.b_at(first + i, column + j);
      }
    __syncthreads();
    for (Index k = 0; k < tile; ++k) {  // behind the last one are zeros
      ANTICHAIN_UNROLL
      for (Index i = 0; i < 2; ++i)
        for (Index j = 0; j < 2; ++j) sums[i][j] += of_a[y + i * side][k] * of_b[k][x + j * side];
    }
    __syncthreads();
  }
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 2; ++j) {
      const Index r = row + y + i * side, c = column + x + j * side;
      if (r < of.rows && c < of.columns) finish(r * of.columns + c, sums[i][j]);
    }
}

// Calls finish(i, sum) for each number of the product.
template <class Finish>
void multiply(Stream stream, const Factors32& of, const Finish& finish) {
  index_of(int64_t(of.rows) * of.columns);
  launch(run_product<Finish>, dim3((of.columns + tile - 1) / tile, (of.rows + tile - 1) / tile),
         dim3(side, side), stream, of, finish);
}

#else

template <class Finish>
void multiply(Stream, const Factors32& of, const Finish& finish) {
  for (Index i = 0; i < index_of(int64_t(of.rows) * of.columns); ++i) {
    float sum = 0;
    for (Index k = 0; k < of.inner; ++k) sum += of.a_at(i / of.columns, k) * of.b_at(k, i % of.columns);
    finish(i, sum);
  }
}

#endif

}  // namespace antichain::cuda
