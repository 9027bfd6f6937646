// Rotary turns pairs of a head's channels by angles that grow with the position, so that a product of a query
// and a key depends on how far they lie apart: Su et al., "RoFormer: Enhanced Transformer with Rotary
// Position Embedding", arXiv 2021.
//
//   x, y  N x T x (heads · D)    positions  N x T, int32 (optional); without them, those are 0 … T − 1
//   a = position · theta^(−2i / D), i = 0 … D / 2 − 1, computed in double
//   (y_first, y_second) = (x_first cos a − x_second sin a, x_second cos a + x_first sin a)
//
// Pair i has channels i and i + D / 2 of each head, as Hugging Face's Llama does, or with `interleaved` 2i
// and 2i + 1, as Meta's. Backward turns dy by −a.
#pragma once

#include "framework/graph.h"

namespace antichain {

struct RotaryOptions {
  int heads = 1;
  double theta = 10000;
  bool interleaved = false;
};
template <class Visit>
void fields(RotaryOptions& o, Visit&& visit) {
  visit("heads", o.heads);
  visit("theta", o.theta);
  visit("interleaved", o.interleaved);
}

class Rotary : public Op {
 public:
  explicit Rotary(RotaryOptions options);
  std::string_view type() const override { return "rotary"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;  // x; then perhaps positions
  Wants wants(size_t input, size_t /*inputs*/) const override {
    return input == 1 ? Wants::integers : Wants::numbers;
  }

  // Returns the number of pairs in a head of x, D / 2.
  int64_t pairs(const Shape& x) const { return x[2] / options.heads / 2; }

  const RotaryOptions options;
};

NodeId rotary(Graph&, std::string name, NodeId x, RotaryOptions, NodeId positions = -1);

}  // namespace antichain
