// Permute puts the dimensions of every sample into another order: torch.permute.
//
//   x  of rank 2 to 6     y's dimension i is x's dimension order[i]; order[0] = 0, since samples stay first
#pragma once

#include <vector>

#include "framework/graph.h"

namespace antichain {

struct PermuteOptions {
  std::vector<int> order = {};
};
template <class Visit>
void fields(PermuteOptions& o, Visit&& visit) {
  visit("order", o.order);
}

class Permute : public Op {
 public:
  explicit Permute(std::vector<int> order);  // Error unless it is a permutation that begins with 0
  std::string_view type() const override { return "permute"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const std::vector<int> order;
};

NodeId permute(Graph&, std::string name, NodeId x, std::vector<int> order);

}  // namespace antichain
