#include "layers/input.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Input::Input(TensorSpec s, bool target) : spec(s), is_target(target) {
  if (spec.shape.rank() == 0) throw Error("an input needs a shape");
  for (int64_t extent : spec.shape)
    if (extent < 1) throw Error(fmt::format("an input cannot be empty, as {} is", spec.shape.str()));
}

std::string Input::str() const { return fmt::format("input({}, {})", spec.shape.str(), name_of(spec.dtype)); }

Signature Input::infer(std::span<const Shape> x) const {
  check_inputs("input", x, 0, 0);
  Signature s;
  s.y = spec;
  return s;
}

NodeId input_images(Graph& graph, std::string name, Shape shape) {
  return graph.add(std::move(name), std::make_shared<Input>(TensorSpec{.shape = shape}), {});
}

NodeId input_labels(Graph& graph, std::string name, int64_t microbatch) {
  const TensorSpec spec{.shape = {microbatch}, .dtype = DType::i32};
  return graph.add(std::move(name), std::make_shared<Input>(spec), {});
}

NodeId input_soft_labels(Graph& graph, std::string name, int64_t microbatch, int64_t classes) {
  const TensorSpec spec{.shape = {microbatch, classes}};
  return graph.add(std::move(name), std::make_shared<Input>(spec), {});
}

NodeId input_integers(Graph& graph, std::string name, Shape shape) {
  return graph.add(std::move(name), std::make_shared<Input>(TensorSpec{.shape = shape, .dtype = DType::i32}),
                   {});
}

}  // namespace antichain
