#include "layers/class_token.h"

#include <fmt/format.h>

#include "layers/check_inputs.h"

namespace antichain {

std::string ClassToken::str() const {
  return fmt::format("class_token({})", antichain::str(options.weight_init));
}

Signature ClassToken::infer(std::span<const Shape> x) const {
  check_inputs("class_token", x, 1, 3);
  Signature s;
  s.y = {.shape = {x[0][0], x[0][1] + 1, x[0][2]}};
  s.params = {{"", {1, 1, x[0][2]}, options.weight_init}};
  s.forward_flops = double(s.y.shape.elements());  // copies
  return s;
}

NodeId class_token(Graph& graph, std::string name, NodeId x, ClassTokenOptions options) {
  return graph.add(std::move(name), std::make_shared<ClassToken>(options), {x});
}

}  // namespace antichain
