// Products of matrices have the bits of three plain loops, whatever the instruction set.
#include "layers/cpu/product.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/random.h"
#include "layers/cpu/product_loops.h"

namespace antichain {
namespace {

using Floats = std::vector<float>;

Floats drawn(int64_t n, uint64_t seed) {
  Floats values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(int(mix(seed, i) % 2001) - 1000) / 777;
  return values;
}

Floats plain_product(const Floats& a, const cpu::Strided& b, int64_t rows, int64_t inner, int64_t columns) {
  Floats c(size_t(rows * columns), 0.0f);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t k = 0; k < inner; ++k)
        c[size_t(i * columns + j)] += a[size_t(i * inner + k)] * b.at[k * b.row + j * b.column];
  return c;
}

// The sizes leave rests of every block: of rows in registers, of columns in a panel, and of both in the
// cache.
TEST(Product, HasTheBitsOfPlainLoops) {
  for (const auto& [rows, inner, columns] :
       {std::tuple{1, 1, 1}, {7, 3, 17}, {101, 257, 33}, {13, 600, 16}}) {
    const Floats a = drawn(rows * inner, 1), b = drawn(inner * columns, 2);
    for (const cpu::Strided& lies : {cpu::Strided{b.data(), columns, 1}, {b.data(), 1, inner}}) {
      Floats c(size_t(rows * columns), 9.0f);
      cpu::multiply(a.data(), lies, c.data(), rows, inner, columns);
      EXPECT_EQ(c, plain_product(a, lies, rows, inner, columns)) << rows << " " << inner << " " << columns;
    }
  }
}

TEST(Product, OfAMatrixAndItsTransposeIsSymmetric) {
  for (const auto& [rows, inner] : {std::pair{1, 5}, {37, 300}, {128, 16}}) {
    const Floats a = drawn(rows * inner, 3);
    const cpu::Strided transposed{a.data(), 1, inner};
    Floats c(size_t(rows * rows), 9.0f);
    cpu::multiply(a.data(), transposed, c.data(), rows, inner, rows, cpu::Result::symmetric);
    EXPECT_EQ(c, plain_product(a, transposed, rows, inner, rows));
  }
}

TEST(Product, EveryInstructionSetGivesTheSameBits) {
  const auto result = [](const cpu::ProductLoops* loops) {
    const int64_t rows = 29, inner = 130;
    Floats c = drawn(rows * cpu::panel_columns, 6);
    loops->add(drawn(rows * inner, 4).data(), inner, drawn(inner * cpu::panel_columns, 5).data(), inner,
               c.data(), rows);
    return c;
  };
  const auto& sets = cpu::every<cpu::ProductLoops>();
  const Floats expected = result(sets.baseline);
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(result(sets.avx2), expected);
  }
  if (cpu::has_avx512()) {
    EXPECT_EQ(result(sets.avx512), expected);
  }
}

}  // namespace
}  // namespace antichain
