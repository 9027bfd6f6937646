// Tests attention and rotary positions beside PyTorch's numbers, that documents packed in one row have the
// gradients that they have apart, that vectors of random words are those of Philox, and errors.
#include "layers/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/random.h"
#include "layers/cpu/philox_loops.h"
#include "layers/rotary.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

Numbers sines(int64_t count, double step) {
  Numbers numbers;
  for (int64_t i = 1; i <= count; ++i) numbers.push_back(std::sin(double(i) * step));
  return numbers;
}

// The first number, one in the middle, the last, and a sum over all.
Numbers probe(const Numbers& x, size_t middle) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * std::cos(double(i) / 3);
  return {x.front(), x[middle], x.back(), sum};
}

void expect_near(const Numbers& a, const Numbers& b) {
  ASSERT_EQ(a.size(), b.size());
  // Inputs are rounded to float32, and sums have up to 80 terms: 6e-8 each.
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 3e-6) << i;
}

// PyTorch 2.6, float64: scaled_dot_product_attention(q, k, v, is_causal=True) with heads of k and v repeated.
TEST(Attention, OfGroupedQueriesIsPyTorchs) {
  const OpCase c{
      "torch",
      std::make_shared<Attention>(AttentionOptions{.heads = 4, .kv_heads = 2, .causal = true}, "a"),
      {{1, 5, 16}, {1, 5, 8}, {1, 5, 8}}};
  Values values{.x = {sines(80, 0.7), sines(40, 1.3), sines(40, 0.4)}};
  for (int i = 0; i < 80; ++i) values.dy.push_back(std::cos(double(i)));
  const Results results = run(cpu_engine(), c, values);
  expect_near(probe(results.y, 7), {0.389418342, 0.999573603, -0.077883767, -1.924305163});
  expect_near(probe(results.dx[0], 7), {0, 0, -0.001625405, -0.256892062});
  expect_near(probe(results.dx[1], 7), {-0.238708978, 0.16918549, -0.045576794, -1.361293651});
  expect_near(probe(results.dx[2], 7), {0.536129796, -0.255692077, -0.096241179, 0.398423091});
}

// Transformers' apply_rotary_pos_emb of Llama with two heads of 8, at the positions 3 to 8.
TEST(Rotary, IsHuggingFaces) {
  const OpCase c{"llama", std::make_shared<Rotary>(RotaryOptions{.heads = 2}), {{1, 6, 16}, {1, 6}}};
  const Results results =
      run(cpu_engine(), c, {.x = {sines(96, 0.7), {3, 4, 5, 6, 7, 8}}, .dy = sines(96, 1)});
  expect_near(probe(results.y, 21), {-0.5882681, 0.292283922, -0.933301509, 0.495738514});
}

TEST(Attention, OfDocumentsInOneRowIsThatOfEachAlone) {
  const AttentionOptions options{.heads = 2, .causal = true};
  const auto op = std::make_shared<Attention>(options, "a");
  const std::vector<int64_t> lengths = {70, 1, 90, 20};  // the third lies in two tiles; the last is padding
  const int64_t all = 181, row = 48;
  const OpCase packed{"packed", op, {{1, all, row}, {1, all}}};
  Values values{.x = {sines(all * row, 0.37), {}}, .dy = sines(all * row / 3, 0.9)};
  for (size_t i = 0; i < lengths.size(); ++i)
    values.x[1].insert(values.x[1].end(), size_t(lengths[i]), i == 3 ? -1 : double(i));
  const Results together = run(cpu_engine(), packed, values);
  int64_t first = 0;
  for (size_t i = 0; i < lengths.size(); first += lengths[i++]) {
    const auto part = [&](const Numbers& of, int64_t width) {
      return Numbers(of.begin() + first * width, of.begin() + (first + lengths[i]) * width);
    };
    const Numbers y = part(together.y, row / 3), dx = part(together.dx[0], row);
    if (i == 3) {
      EXPECT_EQ(y, Numbers(y.size(), 0.0));
      EXPECT_EQ(dx, Numbers(dx.size(), 0.0));
      continue;
    }
    const OpCase alone{"alone", op, {{1, lengths[i], row}}};
    const Results apart =
        run(cpu_engine(), alone, {.x = {part(values.x[0], row)}, .dy = part(values.dy, row / 3)});
    EXPECT_LE(difference(y, apart.y), 1e-6);  // sums of up to 90 terms are cut elsewhere
    EXPECT_LE(difference(dx, apart.dx[0]), 1e-6);
  }
  EXPECT_EQ(first, all);
}

TEST(PhiloxLoops, DrawTheWordsOfPhilox) {
  constexpr int64_t quads = 77;
  constexpr uint64_t key = 0x123456789ABCDEF, first = 0xFFFFFFE0, high = 0x300000001;  // first carries over
  const auto& sets = cpu::every<cpu::PhiloxLoops>();
  std::vector<const cpu::PhiloxLoops*> all = {sets.baseline};
  if (cpu::has_avx2()) all.push_back(sets.avx2);
  if (cpu::has_avx512()) all.push_back(sets.avx512);
  for (const cpu::PhiloxLoops* loops : all) {
    std::vector<uint32_t> words(4 * quads + 1, 7);
    loops->words(key, first, high, quads, words.data());
    for (uint64_t i = 0; i < quads; ++i)
      for (size_t w = 0; w < 4; ++w) EXPECT_EQ(words[4 * i + w], Philox(key).words(first + i, high)[w]) << i;
    EXPECT_EQ(words.back(), 7u);
  }
}

TEST(Attention, NamesWhatDoesNotFit) {
  const auto infer = [](AttentionOptions o, std::vector<Shape> x) {
    return [o, x] { Attention(o, "mix").infer(x); };
  };
  expect_error(infer({.heads = 6, .kv_heads = 4}, {{1, 3, 6}}), {"'mix'", "4 heads of keys", "6 heads"});
  expect_error(infer({.dropout = 1}, {{1, 3, 6}}), {"'mix'", "dropout < 1"});
  expect_error(infer({.heads = 4}, {{1, 3, 20}}), {"20 channels", "12 heads"});
  expect_error(infer({}, {{1, 3, 4}, {1, 5, 4}, {1, 6, 4}}), {"1 x 5 x 4", "1 x 6 x 4"});
  expect_error(infer({}, {{2, 3, 6}, {2, 4}}), {"2 x 3 positions", "2 x 4"});
  expect_error(infer({.causal = true}, {{1, 7, 4}, {1, 5, 4}, {1, 5, 4}}), {"7 queries", "5 positions"});
  expect_error(infer({}, {{1, 3, 4}, {1, 5, 4}, {1, 5, 4}, {1, 5}}), {"documents", "not 3 and 5"});
  const Shape odd{2, 3, 9};
  expect_error([&] { Rotary({.heads = 3}).infer({&odd, 1}); }, {"even number", "2 x 3 x 9"});
}

}  // namespace
}  // namespace antichain::harness
