// Lists the cases of attention and of rotary positions. Their int32 inputs are drawn by `draw`: documents of
// a few positions each, −1 among them, and positions in an order of their own.
#include "layers/attention.h"
#include "layers/rotary.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

// Scores are exponentiated: an error of a few roundings of scores up to 8 is one of so many times 6e-8 of
// probabilities.
constexpr double of_scores = 1e-5;

// In bf16, backward reads the output rounded, and its products with dy cancel those of the scores' gradients.
OpCase attended(std::string name, std::vector<Shape> x, AttentionOptions options) {
  auto op = std::make_shared<Attention>(options, name);
  return {.name = std::move(name),
          .op = std::move(op),
          .x = std::move(x),
          .tolerance = of_scores,
          .input_roundings = 2};
}

OpCase packed(std::string name, Shape x, AttentionOptions options) {
  return attended(std::move(name), {x}, options);
}

OpCase turned(std::string name, std::vector<Shape> x, RotaryOptions options) {
  return {std::move(name), std::make_shared<Rotary>(options), std::move(x)};
}

OpCase spread(OpCase c, double spread) {
  c.spread = spread;
  return c;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  const Shape long_rows{2, 150, 32};  // of more than one tile
  return {
      packed("attention_packed", {2, 7, 48}, {.heads = 2}),
      packed("attention_packed_causal", {2, 150, 48}, {.heads = 2, .causal = true}),
      packed("attention_packed_groups", {3, 20, 40}, {.heads = 3, .kv_heads = 1, .causal = true}),
      packed("attention_of_one_position", {3, 1, 9}, {.causal = true}),
      packed("attention_odd_width", {2, 19, 51}, {.heads = 1, .scale = 0.5f}),
      packed("attention_dropping", {2, 139, 48}, {.heads = 2, .causal = true, .dropout = 0.25f}),
      attended("attention_apart", {long_rows, long_rows, long_rows}, {.heads = 2}),
      spread(attended("attention_sharp", {long_rows, long_rows, long_rows}, {.heads = 2, .causal = true}), 3),
      attended("attention_groups", {{2, 37, 64}, {2, 37, 32}, {2, 37, 32}}, {.heads = 4, .kv_heads = 2}),
      attended("attention_across", {{2, 9, 32}, {2, 300, 32}, {2, 300, 32}}, {.heads = 2}),
      attended("attention_of_the_last", {{2, 3, 32}, {2, 141, 32}, {2, 141, 32}},
               {.heads = 2, .causal = true}),
      attended("attention_dropping_apart", {{2, 30, 24}, {2, 17, 24}, {2, 17, 24}},
               {.heads = 3, .dropout = 0.5f}),
      attended("attention_documents", {{2, 150, 96}, {2, 150}}, {.heads = 2}),
      attended("attention_documents_causal", {{2, 280, 48}, {2, 280}}, {.heads = 1, .causal = true}),
      attended("attention_documents_of_the_last", {{2, 5, 16}, {2, 40, 16}, {2, 40, 16}, {2, 40}},
               {.heads = 2, .causal = true}),
      turned("rotary", {{2, 9, 32}}, {.heads = 2}),
      turned("rotary_interleaved", {{3, 17, 20}}, {.theta = 500, .interleaved = true}),
      turned("rotary_positions", {{2, 20, 36}, {2, 20}}, {.heads = 3}),
      turned("rotary_positions_of_one", {{3, 1, 16}, {3, 1}}, {.heads = 1, .interleaved = true}),
  };
}

}  // namespace antichain::harness
