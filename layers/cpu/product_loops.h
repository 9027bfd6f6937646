// Declares the loop of a product of matrices (layers/cpu/product.h), for each instruction set
// (product_loops.inc). The results are the same bits with all of them.
#pragma once

#include <cstdint>

#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

constexpr int64_t panel_columns = 16;

struct ProductLoops {
  // c ← c + a panel: rows x inner times inner x panel_columns. Row r of `a` begins at a + r · a_row; the
  // other two are dense. Each element of c is added to in the order of the inner index.
  void (*add)(const float* a, int64_t a_row, const float* panel, int64_t inner, float* c, int64_t rows);
};

}  // namespace antichain::cpu
