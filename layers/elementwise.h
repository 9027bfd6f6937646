// Elementwise computes a formula of its inputs and of one parameter, element by element, with PyTorch's
// broadcasting.
//
// The formula is a list of steps. Each applies a function of layers/elementwise_table.inc to inputs (x0, x1,
// …), the parameter (p), results of earlier steps (s0, s1, …) and numbers; y is the last step's result:
//
//   x0 · tanh(log(1 + exp(x1)))      "softplus x1", "tanh s0", "multiply x0 s1"
//
//   x  tensors of one rank and equally many samples; on each other axis, extents are equal or 1
//   p  of any shape that is repeated to that of y; it has no samples. Its last axis is the last of y, or
//      parameter_axis: a factor for each channel of images has the shape C and the axis 1
//   y  on each axis the largest extent
//   gradients are summed over the elements for which an operand is repeated, in double and in a fixed order
//
// A chain of such nodes becomes one (framework/fuse.h), so that it takes one pass over memory.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

enum class ElementwiseFunction : uint8_t {
#define ROW(name, operands, flops, value, da, db, dc) name,
#include "layers/elementwise_table.inc"
#undef ROW
};

// An ElementwiseProgram is the formula as kernels read it: a plain value, which device code takes as it is.
// Values have places: the inputs, the parameter, the numbers, then the results of the steps.
struct ElementwiseProgram {
  static constexpr int most_inputs = 8, most_numbers = 24, most_steps = 24;
  static constexpr int parameter = most_inputs, first_number = parameter + 1;
  static constexpr int first_step = first_number + most_numbers, places = first_step + most_steps;
  struct Step {
    ElementwiseFunction function;
    uint8_t count;        // of operands
    uint8_t operands[3];  // places; those beyond repeat the first
  };

  float number[most_numbers] = {};
  Step step[most_steps] = {};
  int inputs = 0, numbers = 0, steps = 0;
  bool has_parameter = false;

  int result() const { return first_step + steps - 1; }
};

struct ElementwiseOptions {
  std::vector<std::string> steps = {};
  std::optional<Shape> parameter = std::nullopt;
  int parameter_axis = -1;
  Initialiser parameter_init = {};
};
template <class Visit>
void fields(ElementwiseOptions& o, Visit&& visit) {
  visit("steps", o.steps);
  visit("parameter", o.parameter);
  visit("parameter_axis", o.parameter_axis);
  visit("parameter_init", o.parameter_init);
}

class Elementwise : public Op {
 public:
  // Throws Error naming the step that can't be read, and why.
  explicit Elementwise(ElementwiseOptions);
  std::string_view type() const override { return "elementwise"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;
  std::shared_ptr<const Op> then(const Op& next, int input) const override;

  const ElementwiseOptions options;
  const ElementwiseProgram program;
};

// Says where the elements of one operand lie that is repeated to the shape of y. Axes that neighbour each
// other are one where all operands allow it, and the last is the innermost.
struct Repeated {
  int axes = 1;
  std::array<int64_t, Shape::max_rank> extents{}, strides{};  // of y's elements; stride 0: repeated
  int64_t elements = 0;                                       // of the operand
  bool whole = false;                                         // of the shape of y
};
// Returns where the elements of each input lie, and at the end of the parameter, where there is one. All have
// the same axes.
std::vector<Repeated> repeated(const Elementwise&, std::span<const Shape> x);

// Says of each place whether backward reads its value: the gradients' formulas do, or what they read does.
using PlacesRead = std::array<bool, ElementwiseProgram::places>;
PlacesRead read_by_backward(const ElementwiseProgram&);
// Returns whether backward reads no input: sums, differences, and products with numbers.
bool is_linear(const ElementwiseProgram&);

NodeId elementwise(Graph&, std::string name, std::vector<NodeId> x, ElementwiseOptions);

}  // namespace antichain
