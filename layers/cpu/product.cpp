#include "layers/cpu/product.h"

#include <algorithm>

#include "layers/cpu/product_loops.h"

namespace antichain::cpu {
namespace {

// A block of `b` is copied to a panel that the first-level cache holds, and all rows of `a` pass over it. The
// sums of some rows stay there, too.
constexpr int64_t most_inner = 256, most_rows = 96;

void pack(const Strided& b, int64_t inner, int64_t columns, float* panel) {
  for (int64_t k = 0; k < inner; ++k)
    for (int64_t n = 0; n < panel_columns; ++n)
      panel[k * panel_columns + n] = n < columns ? b.at[k * b.row + n * b.column] : 0;
}

// Adds to (or, at the beginning of a sum, sets) `rows` rows and at most panel_columns columns of c.
void add_block(const ProductLoops& loops, const float* a, int64_t a_row, const float* panel, int64_t inner,
               bool begins, float* c, int64_t c_row, int64_t rows, int64_t columns) {
  float sums[most_rows * panel_columns] = {};
  if (!begins)
    for (int64_t r = 0; r < rows; ++r) std::copy_n(c + r * c_row, columns, sums + r * panel_columns);
  loops.add(a, a_row, panel, inner, sums, rows);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(sums + r * panel_columns, columns, c + r * c_row);
}

}  // namespace

void multiply(const float* a, const Strided& b, float* c, int64_t rows, int64_t inner, int64_t columns,
              Result result) {
  const ProductLoops& loops = best_loops<ProductLoops>();
#pragma omp parallel for schedule(dynamic)
  for (int64_t j = 0; j < columns; j += panel_columns) {
    const int64_t width = std::min(panel_columns, columns - j);
    const int64_t end = result == Result::symmetric ? std::min(rows, j + width) : rows;
    float panel[most_inner * panel_columns];
    for (int64_t k = 0; k < inner; k += most_inner) {
      const int64_t depth = std::min(most_inner, inner - k);
      pack({b.at + k * b.row + j * b.column, b.row, b.column}, depth, width, panel);
      for (int64_t i = 0; i < end; i += most_rows)
        add_block(loops, a + i * inner + k, inner, panel, depth, k == 0, c + i * columns + j, columns,
                  std::min(most_rows, end - i), width);
    }
  }
  if (result == Result::any) return;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < i; ++j) c[i * columns + j] = c[j * columns + i];
}

}  // namespace antichain::cpu
