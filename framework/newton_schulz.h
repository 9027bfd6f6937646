// These are the numbers by which Muon makes the singular values of a matrix nearly equal (framework/muon.h):
// an iteration of Newton and Schulz with the coefficients of Jordan et al., "Muon: An optimizer for hidden
// layers in neural networks", 2024.
//
//   X ← U / max(|U|, 1e-7), transposed where U has more rows than columns
//   five times:  A ← X Xᵀ,  X ← 3.4445 X + (−4.7750 A + 2.0315 A²) X
//
// Every element of a product is a sum in the order of the inner index, and the square of the norm is the sum
// over the rows of sums over a row, so every engine has the same bits, whatever the number of threads.
#pragma once

#include <cstdint>

namespace antichain {

struct NewtonSchulz {
  static constexpr int iterations = 5;
  static constexpr float of_x = 3.4445f, of_a = -4.7750f, of_a_squared = 2.0315f;
  static constexpr double least_norm = 1e-7;
};

// A MatrixSize is that of U, row by row, and of X, which is never taller than wide.
struct MatrixSize {
  int64_t rows = 0, columns = 0;

  constexpr bool is_tall() const { return rows > columns; }
  constexpr int64_t narrow() const { return is_tall() ? columns : rows; }
  constexpr int64_t wide() const { return is_tall() ? rows : columns; }
  constexpr int64_t elements() const { return rows * columns; }
};

}  // namespace antichain
