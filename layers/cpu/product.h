// Multiplies matrices in float32. Every element is a sum in the order of the inner index, and no
// multiplication is fused with an addition, so the bits are those of three plain loops, on any number of
// threads.
#pragma once

#include <cstdint>

namespace antichain::cpu {

struct Strided {  // element (i, j) of the matrix is at[i · row + j · column]
  const float* at;
  int64_t row, column;
};

enum class Result { any, symmetric };

// c ← a b: rows x inner times inner x columns; `a` and c are dense. Of a symmetric result half is computed,
// and the other half is copied. c must not overlap the factors.
void multiply(const float* a, const Strided& b, float* c, int64_t rows, int64_t inner, int64_t columns,
              Result = Result::any);

}  // namespace antichain::cpu
