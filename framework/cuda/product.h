// Multiplies matrices of float32 with the CPU's bits: each number is a sum in the order of the inner index
// (--fmad=false). A block computes a tile of 32 x 32 numbers of the product and reads both factors through
// shared memory, so each is read once for 32 products.
#pragma once

#include <algorithm>

#include "framework/cuda/launch.h"

namespace antichain::cuda {

constexpr Index tile = 32;
constexpr Index side = 16;  // threads of a block along a tile, with two numbers each way

// The factors a (rows x inner) and b (inner x columns), or their transposes, lie row by row; several of them
// one behind the other.
struct Factors32 {
  const float *a, *b;
  Index rows, inner, columns;
  bool b_is_transposed;
  bool a_is_transposed = false;
  Index count = 1;

  ANTICHAIN_ANYWHERE Factors32 number(Index i) const {
    Factors32 factors = *this;
    factors.a += i * rows * inner;
    factors.b += i * inner * columns;
    return factors;
  }
  ANTICHAIN_ANYWHERE float a_at(Index row, Index k) const {
    if (row >= rows || k >= inner) return 0;
    return a_is_transposed ? a[k * rows + row] : a[row * inner + k];
  }
  ANTICHAIN_ANYWHERE float b_at(Index k, Index column) const {
    if (k >= inner || column >= columns) return 0;
    return b_is_transposed ? b[column * inner + k] : b[k * columns + column];
  }
};

#ifdef ANTICHAIN_LAUNCHES

template <class Finish>
__global__ void __launch_bounds__(side* side) run_product(const Factors32 all, const Finish finish) {
  __shared__ float of_a[tile][tile + 1], of_b[tile][tile + 1];
  const Index x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * tile, column = blockIdx.x * tile;
  for (Index matrix = blockIdx.z; matrix < all.count; matrix += gridDim.z) {
    const Factors32 of = all.number(matrix);
    float sums[2][2] = {};
    for (Index first = 0; first < of.inner; first += tile) {
      for (Index i = y; i < tile; i += side)
        for (Index j = x; j < tile; j += side) {  // neighbours read neighbours
          if (of.a_is_transposed)
            of_a[j][i] = of.a_at(row + j, first + i);
          else
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
        if (r < of.rows && c < of.columns) finish((matrix * of.rows + r) * of.columns + c, sums[i][j]);
      }
  }
}

// Calls finish(i, sum) for each number of the products.
template <class Finish>
void multiply(Stream stream, const Factors32& of, const Finish& finish) {
  index_of(int64_t(of.count) * of.rows * of.columns);
  constexpr Index most_layers = 65535;  // of a grid
  launch(run_product<Finish>,
         dim3((of.columns + tile - 1) / tile, (of.rows + tile - 1) / tile, std::min(of.count, most_layers)),
         dim3(side, side), stream, of, finish);
}

#else

template <class Finish>
void multiply(Stream, const Factors32& of, const Finish& finish) {
  for (Index i = 0; i < index_of(int64_t(of.count) * of.rows * of.columns); ++i) {
    const Index row = i / of.columns % of.rows;
    const Factors32 factors = of.number(i / of.columns / of.rows);
    float sum = 0;
    for (Index k = 0; k < of.inner; ++k) sum += factors.a_at(row, k) * factors.b_at(k, i % of.columns);
    finish(i, sum);
  }
}

#endif

}  // namespace antichain::cuda
