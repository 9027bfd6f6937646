// Linear is a fully connected layer: y = x weightᵀ + bias, for each position of each sample.
//
//   x  N x … x I      weight  O x I      bias  O (optional)      y  N x … x O
//
// With `in_first` the weight is I x O, as that of GPT-2's Conv1D. An engine may fuse the layer with a ReLU
// behind it (framework/fuse.h).
#pragma once

#include <optional>

#include "framework/graph.h"

namespace antichain {

struct LinearOptions {
  int64_t out = 0;  // O
  bool bias = true;
  bool in_first = false;
  // The default of both is U(±1 / sqrt(I)), as PyTorch's Linear.
  std::optional<Initialiser> weight_init = std::nullopt, bias_init = std::nullopt;
  bool relu = false;  // fused
};
template <class Visit>
void fields(LinearOptions& o, Visit&& visit) {
  visit("out", o.out);
  visit("bias", o.bias);
  visit("in_first", o.in_first);
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

// LinearSizes are those of the layer's products: rows x I times I x O.
struct LinearSizes {
  int64_t rows, in, out;
  LinearSizes(const Linear& op, const Shape& x)
      : rows(x.elements() / x[x.rank() - 1]), in(x[x.rank() - 1]), out(op.options.out) {}
};

NodeId linear(Graph&, std::string name, NodeId x, LinearOptions);

}  // namespace antichain
