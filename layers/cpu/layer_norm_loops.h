// Computes layer norm over tiles of up to 16 rows, with loops for each instruction set
// (layer_norm_loops.inc). The results are the same bits with all of them.
//
// A row is a sequence of vectors of 16 numbers, wherever they lie: one behind the other, or a block of
// channels further on.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

constexpr int64_t rows_of_tile = 16;

// All distances are in elements.
struct Rows {
  int64_t length;       // of a row
  int64_t row, vector;  // from a row to the next, from a row's vector to its next
  int64_t half;         // from the first 8 numbers of a vector to the others: 8 unless blocks have 8
  bool blocked;         // whether memory holds whole blocks: zeros follow the end of a row
  int64_t whole() const { return length / 16; }  // vectors
  int64_t tail() const { return length % 16; }   // numbers of the last vector, if it is not whole
};

// A row's numbers become x̂ = (x − mean) · scale + shift, where shift makes up for rounding the mean.
struct RowNormals {
  float mean[rows_of_tile], scale[rows_of_tile], shift[rows_of_tile];
};

// Holds the factors of a row's gradient dx = a · dy · weight + (b · x̂ + c).
struct RowGradients {
  float a[rows_of_tile], b[rows_of_tile], c[rows_of_tile];
};

// Weights, biases and sums of columns have a number for each of a row's, in whole vectors.
// T is float or Bf16. Bf16 numbers are widened to float32 for computing, and each result is rounded.
template <class T>
struct LayerNormLoops {
  // Computes each row's mean and sum of squared deviations from it.
  void (*moments)(const T* x, const Rows&, int64_t rows, double* mean, double* squares);
  // Computes y = x̂ · weight + bias.
  void (*normalise)(const T* x, T* y, const Rows&, int64_t rows, const RowNormals&, const float* weight,
                    const float* bias);
  // Computes each row's Σ dy · weight and Σ dy · weight · x̂.
  void (*sums)(const T* x, const T* dy, const Rows&, int64_t rows, const RowNormals&, const float* weight,
               double* sum, double* product);
  // Writes dx unless it is nullptr, or adds to it.
  void (*gradient)(const T* x, const T* dy, T* dx, bool adds, const Rows&, int64_t rows, const RowNormals&,
                   const RowGradients&, const float* weight);
  // Adds the rows' dy to `sum` and their dy · x̂ to `product`, column by column.
  void (*columns)(const T* x, const T* dy, const Rows&, int64_t rows, const RowNormals&, double* sum,
                  double* product);
};

}  // namespace antichain::cpu
