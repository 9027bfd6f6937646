// Gather gathers along one axis, at constant places: torch's x[:, :, table].
//
//   x  of any rank     y  as x, with as many numbers along the axis as the table has
//   y[…, i, …] = x[…, table[i], …]
//   dx[…, j, …] = Σ dy[…, i, …] over the i with table[i] = j, in their order
//
// A parameter is gathered by a computed operator (framework/computed.h), in which this is a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

struct GatherOptions {
  int axis = 1;
  std::vector<int64_t> table = {};
};
template <class Visit>
void fields(GatherOptions& o, Visit&& visit) {
  visit("axis", o.axis);
  visit("table", o.table);
}

class Gather : public Op {
 public:
  explicit Gather(GatherOptions options);  // Error when an option makes no sense
  std::string_view type() const override { return "gather"; }
  std::string str() const override;  // a hash stands for a long table
  Signature infer(std::span<const Shape> x) const override;

  const GatherOptions options;
};

// GatherPlaces say where numbers lie: x is outer x extent x inner, and y is outer x count x inner. Number j
// of x is at places starts[j] to starts[j + 1] of `places` in y.
struct GatherPlaces {
  int64_t outer, extent, count, inner;
  std::vector<int32_t> table, starts, places;

  GatherPlaces(const Gather&, const Shape& x);
};

NodeId gather(Graph&, std::string name, NodeId x, GatherOptions);

// RelativeBiasOptions are those of a bias of attention that depends on where two positions lie: Liu et al.,
// "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows", ICCV 2021, section 3.2.
struct RelativeBiasOptions {
  int64_t rows = 0;                 // of the parameter
  std::vector<int64_t> table = {};  // rows of it, L · M of them
  std::string parameter = "relative_position_bias_table";
  Initialiser init = Initialiser::normal(0.02);
};
// y = x + parameter[table]: x and y are N x H x L x M, the parameter is rows x H.
NodeId add_relative_bias(Graph&, std::string name, NodeId x, RelativeBiasOptions);

}  // namespace antichain
