// Constant gives every sample the same numbers: tensors that a model's code makes while it runs (the first
// state of a recurrent network, coordinates, masks, zeros that pad).
//
//   x  N x … of any type; only how many samples it has is read
//   y  N x shape…, for each sample `values` in the order of the shape; one value stands for all
//   dx = 0
#pragma once

#include <vector>

#include "framework/graph.h"

namespace antichain {

struct ConstantOptions {
  std::vector<int64_t> shape = {};  // of a sample: without N
  std::vector<float> values = {};
};
template <class Visit>
void fields(ConstantOptions& o, Visit&& visit) {
  visit("shape", o.shape);
  visit("values", o.values);
}

class Constant : public Op {
 public:
  // Throws Error unless there are one value or as many as the shape has, and all are finite.
  explicit Constant(ConstantOptions);
  std::string_view type() const override { return "constant"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;
  Wants wants(size_t /*input*/, size_t /*inputs*/) const override { return Wants::samples; }
  // Returns the values of one sample, as many as the shape has.
  std::vector<float> sample() const;

  const ConstantOptions options;
};

NodeId constant(Graph&, std::string name, NodeId x, ConstantOptions);

}  // namespace antichain
