// Reshape gives every sample another shape of as many numbers, in the same order: torch.reshape.
//
//   x  N x …     y  N x shape…; one extent may be −1, which stands for what the others leave
#pragma once

#include <vector>

#include "framework/graph.h"

namespace antichain {

struct ReshapeOptions {
  std::vector<int64_t> shape = {};
};
template <class Visit>
void fields(ReshapeOptions& o, Visit&& visit) {
  visit("shape", o.shape);
}

class Reshape : public Op {
 public:
  explicit Reshape(std::vector<int64_t> shape);  // Error when an extent makes no sense
  std::string_view type() const override { return "reshape"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const std::vector<int64_t> shape;  // of a sample: without N
};

NodeId reshape(Graph&, std::string name, NodeId x, std::vector<int64_t> shape);

}  // namespace antichain
