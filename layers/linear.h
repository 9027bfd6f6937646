// Linear is a fully connected layer: y = x weightᵀ + bias.
//
//   x  N x I      weight  O x I      bias  O (optional)      y  N x O
//
// An engine may fuse it with a ReLU behind it (framework/fuse.h).
#pragma once

#include <optional>

#include "framework/graph.h"

namespace antichain {

struct LinearOptions {
  int64_t out = 0;  // O
  bool bias = true;
  // The default of both is U(±1 / sqrt(I)), as PyTorch's Linear.
  std::optional<Initialiser> weight_init = std::nullopt, bias_init = std::nullopt;
  bool relu = false;  // fused
};
template <class Visit>
void fields(LinearOptions& o, Visit&& visit) {
  visit("out", o.out);
  visit("bias", o.bias);
  visit("weight_init", o.weight_init);
  visit("bias_init", o.bias_init);
}

class Linear : public Op {
 public:
  explicit Linear(LinearOptions options);
  std::string_view type() const override { return "linear"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;
  std::shared_ptr<const Op> then(const Op& next, int input) const override;

  const LinearOptions options;
};

NodeId linear(Graph&, std::string name, NodeId x, LinearOptions);

}  // namespace antichain
