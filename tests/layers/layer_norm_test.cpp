// Tests how exact layer norm is, that its loops give the same bits for every instruction set, and its
// errors.
#include "layers/layer_norm.h"

#include <gtest/gtest.h>

#include "framework/random.h"
#include "layers/cpu/layer_norm_loops.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"
#include "tests/layers/reference/reference.h"

namespace antichain::harness {
namespace {

OpCase norm_of_rows(Shape x, LayerNormOptions options = {}) {
  return {"norm", std::make_shared<LayerNorm>(options), {x}};
}

// A mean of 100 rounded to float32 is off by up to 4e-6, and squares of 100 by 1e-3: neither may show.
TEST(LayerNorm, LosesNothingWhereTheMeanIsFarFromZero) {
  for (const OpCase& c : {norm_of_rows({40, 768}), norm_of_rows({2, 96, 9, 7}, {.channels = true})}) {
    Values values = draw(c);
    for (double& v : values.x[0]) v = float(100 + v);
    const Results exact = run(reference::backend(), c, values),
                  ours = run(cpu_engine(), c, values, {.offered = Layout::nChw16c});
    // x̂ is up to 2, with a handful of roundings of 6e-8 each; the inputs are float32 numbers as they are.
    EXPECT_LT(difference(ours.y, exact.y), 4e-7);
    EXPECT_LT(difference(ours.dx[0], exact.dx[0]), 1e-6);
  }
}

// A row of one value has no deviation, and not a rounding error's size of it.
TEST(LayerNorm, ConstantRowsBecomeTheBias) {
  const OpCase c = norm_of_rows({3, 100});
  Values values = draw(c);
  for (double& v : values.x[0]) v = float(0.3);
  const Results ours = run(cpu_engine(), c, values);
  for (size_t i = 0; i < ours.y.size(); ++i) EXPECT_EQ(ours.y[i], values.params[1][i % 100]);
}

// Returns everything that the loops compute from random rows.
template <class T>
std::vector<double> everything(const cpu::LayerNormLoops<T>& loops, const cpu::Rows& rows, int64_t count) {
  const size_t all = size_t(2 * rows.half + (rows.length / 16 + 1) * rows.vector + count * rows.row);
  const size_t padded = size_t(rows.length + 15) / 16 * 16;
  const Philox random(9);
  std::vector<T> x(all), dy(all), y(all, T(0.0f)), dx(all, T(1.5f)), added(all, T(1.5f));
  for (size_t i = 0; i < all; ++i) {
    const auto w = random.words(i);
    x[i] = T(Philox::uniform(w[0]) + 3), dy[i] = T(Philox::uniform(w[1]) - 0.5f);
  }
  std::vector<float> weight(padded), bias(padded);
  for (size_t i = 0; i < padded; ++i) weight[i] = 0.5f + float(i % 7), bias[i] = float(i % 5);
  cpu::RowNormals normal{};
  cpu::RowGradients g{};
  for (int r = 0; r < cpu::rows_of_tile; ++r) {
    normal.mean[r] = 3.4f, normal.scale[r] = 1 + 0.1f * float(r), normal.shift[r] = 1e-3f;
    g.a[r] = 0.3f, g.b[r] = 0.7f, g.c[r] = 0.01f * float(r);
  }
  std::vector<double> numbers, columns(2 * padded, 0.25);
  double one[cpu::rows_of_tile] = {}, two[cpu::rows_of_tile] = {};
  const auto take = [&](const auto* values, size_t n) { numbers.insert(numbers.end(), values, values + n); };
  loops.moments(x.data(), rows, count, one, two);
  take(one, size_t(count)), take(two, size_t(count));
  loops.sums(x.data(), dy.data(), rows, count, normal, weight.data(), one, two);
  take(one, size_t(count)), take(two, size_t(count));
  loops.normalise(x.data(), y.data(), rows, count, normal, weight.data(), bias.data());
  loops.gradient(x.data(), dy.data(), dx.data(), false, rows, count, normal, g, weight.data());
  loops.gradient(x.data(), dy.data(), added.data(), true, rows, count, normal, g, weight.data());
  loops.columns(x.data(), dy.data(), rows, count, normal, columns.data(), columns.data() + padded);
  for (const auto& values : {y, dx, added}) take(values.data(), all);
  take(columns.data(), columns.size());
  return numbers;
}

template <class T>
void expect_same_bits_of_rows() {
  const auto& [baseline, avx2, avx512] = cpu::every<cpu::LayerNormLoops<T>>();
  for (const int64_t length : {5, 16, 56, 100, 1030})
    for (const cpu::Rows& rows : {cpu::Rows{length, length, 16, 8, false},
                                  cpu::Rows{length, 16, 320, 8, true}, cpu::Rows{length, 8, 320, 160, true}})
      for (const int64_t count : {1, 7, 16}) {
        SCOPED_TRACE(std::to_string(count) + " rows of " + std::to_string(length));
        const std::vector<double> expected = everything(*baseline, rows, count);
        if (__builtin_cpu_supports("avx2")) {
          EXPECT_EQ(everything(*avx2, rows, count), expected);
        }
        if (cpu::has_avx512()) {
          EXPECT_EQ(everything(*avx512, rows, count), expected);
        }
      }
}

TEST(LayerNorm, EveryInstructionSetGivesTheSameBits) { expect_same_bits_of_rows<float>(); }
TEST(LayerNorm, EveryInstructionSetGivesTheSameBitsInBf16) { expect_same_bits_of_rows<Bf16>(); }

TEST(LayerNorm, NamesWhatDoesNotFit) {
  const auto infer = [](LayerNormOptions o, Shape x) { return [=] { LayerNorm(o).infer({&x, 1}); }; };
  expect_error(infer({.over = {5}}, {2, 6}), {"layer_norm(5", "2 x 6", "last axes must be 5"});
  expect_error(infer({.over = {2, 6}}, {2, 6}), {"2 x 6", "behind at least one other"});
  expect_error(infer({.channels = true}, {2, 6}), {"4 dimensions", "2 x 6"});
  expect_error([] { LayerNorm({.over = {6}, .channels = true}); }, {"channels of a pixel", "over 6"});
  expect_error([] { LayerNorm({.eps = 0}); }, {"eps > 0"});
}

TEST(LayerNorm, HasParametersOfARowsShape) {
  const auto params = [](LayerNormOptions o, Shape x) { return LayerNorm(o).infer({&x, 1}).params; };
  EXPECT_EQ(params({.over = {4, 6}}, {2, 3, 4, 6})[0].shape, (Shape{4, 6}));
  EXPECT_EQ(params({}, {2, 3, 4, 6})[1].shape, (Shape{6}));
  EXPECT_EQ(params({.channels = true}, {2, 3, 4, 6})[0].shape, (Shape{3}));
  EXPECT_EQ(params({.bias = false}, {2, 6}).size(), 1u);
  EXPECT_EQ(params({.affine = false}, {2, 6}).size(), 0u);
}

}  // namespace
}  // namespace antichain::harness
