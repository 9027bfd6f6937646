#include "layers/linear.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Linear::Linear(LinearOptions o) : options(o) {
  if (o.out < 1) throw Error(fmt::format("linear wants at least one output, not {}", o.out));
}

std::string Linear::str() const {
  std::string init;
  if (options.weight_init) init += ", weight " + antichain::str(*options.weight_init);
  if (options.bias_init) init += ", bias " + antichain::str(*options.bias_init);
  return fmt::format("linear({}, {}{}{}{})", options.out, options.bias ? "bias" : "no bias",
                     options.in_first ? ", in first" : "", init, options.relu ? ", relu" : "");
}

std::shared_ptr<const Op> Linear::then(const Op& next, int /*input*/) const {
  if (options.relu || next.type() != "relu") return nullptr;
  LinearOptions fused = options;
  fused.relu = true;
  return std::make_shared<Linear>(fused);
}

Signature Linear::infer(std::span<const Shape> x) const {
  check_inputs("linear", x, 1, 0);
  if (x[0].rank() < 2)
    throw Error(fmt::format("linear wants samples of numbers, N x … x I, not {}", x[0].str()));
  const LinearSizes sizes(*this, x[0]);
  const Initialiser uniform = Initialiser::kaiming_uniform_fan_in(sizes.in);
  Signature s;
  s.y = {.shape = x[0]};
  s.y.shape[x[0].rank() - 1] = sizes.out;
  const Shape weight = options.in_first ? Shape{sizes.in, sizes.out} : Shape{sizes.out, sizes.in};
  s.params.push_back({"weight", weight, options.weight_init.value_or(uniform)});
  s.params.back().hidden_matrix = true;
  if (options.bias) s.params.push_back({"bias", {options.out}, options.bias_init.value_or(uniform)});
  s.forward_flops = double(s.y.shape.elements()) * double(2 * sizes.in + options.bias + options.relu);
  return s;
}

NodeId linear(Graph& graph, std::string name, NodeId x, LinearOptions options) {
  return graph.add(std::move(name), std::make_shared<Linear>(options), {x});
}

}  // namespace antichain
