// Computed is an operator whose parameters are computed of others before it uses them: weight
// standardisation, weight normalisation, spectral normalisation, a mask, a weight in another shape.
//
//   weight = s1      s0 = mean of v over its axes      s1 = v − s0       y = conv2d(x) with that weight
//
// The steps are operators without parameters of their own. Tensors have one sample there: a parameter of
// K x C x H x W is a tensor of 1 x K x C x H x W. A step's inputs are parameters and buffers of the node, by
// their names, and results of earlier steps (s0, s1, …).
//
// Planner, schedule and transport see one node with the parameters that are trained. Any engine carries it
// out by the kernels that it has. The steps run once after each update; where they read buffers, they run in
// each forward. Gradients of the computed parameters pass back through the steps in each backward.
#pragma once

#include <string>
#include <vector>

#include "framework/backend.h"
#include "framework/graph.h"
#include "framework/op.h"

namespace antichain {

struct ComputedOptions {
  struct Step {
    std::shared_ptr<const Op> op;
    std::vector<std::string> inputs;
  };
  struct Value {
    std::string parameter;  // of `of`
    int step = 0;           // whose result it is
  };

  std::shared_ptr<const Op> of;
  std::vector<ParamSpec> parameters, buffers;  // what the steps read
  std::vector<Step> steps;
  std::vector<Value> values;
};

// The parameters are those of `of` that are not computed, then those of the options. Buffers and statistics
// are those of `of`, then those of the options, then those of the steps.
class Computed : public Op {
 public:
  static constexpr std::string_view type_name = "computed";

  explicit Computed(ComputedOptions);  // Error naming the step or the value that is wrong
  std::string_view type() const override { return type_name; }
  std::string str() const override;
  Role role() const override { return options.of->role(); }
  Signature infer(std::span<const Shape> x) const override;

  const ComputedOptions options;
};

// Returns the graph of the steps that a result needs, which is its last node. Copies of buffers are nodes,
// which backward can read. Throws Error naming an input that a step can't read, or an operator that can't be
// one.
Graph graph_of_steps(const ComputedOptions&, int result);

// Returns the entry of a backend for this operator, which calls the backend's other ones.
KernelEntry computed_entry(const Backend&);

}  // namespace antichain
