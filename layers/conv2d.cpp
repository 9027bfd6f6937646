#include "layers/conv2d.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Conv2d::Conv2d(Conv2dOptions o) : options(o) {
  const auto least = [](Extent e) { return std::min(e.h, e.w); };
  const bool positive =
      o.out > 0 && o.groups > 0 && least(o.kernel) > 0 && least(o.stride) > 0 && least(o.dilation) > 0;
  if (!positive || least(o.pad.before) < 0 || least(o.pad.after) < 0)
    throw Error(fmt::format("{} has an option that is not positive", str()));
  if (o.out % o.groups != 0)
    throw Error(fmt::format("conv2d cannot divide {} filters into {} groups", o.out, o.groups));
  if (o.matrix && (o.kernel != Extent(1) || o.groups != 1))
    throw Error(
        fmt::format("{} has a matrix of weights, which only a 1 x 1 kernel without groups is", str()));
  if (o.line && (o.kernel.h != 1 || o.matrix))
    throw Error(fmt::format("{} has filters of one dimension, which only a kernel of one row has", str()));
}

std::string Conv2d::str() const {
  const Conv2dOptions& o = options;
  std::string init;
  if (o.weight_init) init += ", weight " + antichain::str(*o.weight_init);
  if (o.bias_init) init += ", bias " + antichain::str(*o.bias_init);
  const std::string dilation = o.dilation == Extent(1) ? "" : ", dilation " + antichain::str(o.dilation);
  return fmt::format("conv2d({}, kernel {}, stride {}, pad {}{}, groups {}, {}{}{}{})", o.out,
                     antichain::str(o.kernel), antichain::str(o.stride), antichain::str(o.pad), dilation,
                     o.groups, o.bias ? "bias" : "no bias",
                     o.matrix ? ", matrix"
                     : o.line ? ", line"
                              : "",
                     init, o.relu ? ", relu" : "");
}

std::shared_ptr<const Op> Conv2d::then(const Op& next, int /*input*/) const {
  if (options.relu || next.type() != "relu") return nullptr;
  Conv2dOptions fused = options;
  fused.relu = true;
  return std::make_shared<Conv2d>(fused);
}

Shape Conv2d::filters(const Shape& x) const {
  return {options.out, x[1] / options.groups, options.kernel.h, options.kernel.w};
}

Signature Conv2d::infer(std::span<const Shape> inputs) const {
  check_inputs("conv2d", inputs, 1, 4);
  const Shape& x = inputs[0];
  const Conv2dOptions& o = options;
  if (x[1] % o.groups != 0)
    throw Error(fmt::format("conv2d cannot divide {} channels into {} groups", x[1], o.groups));
  const Extent window = reach(o.kernel, o.dilation);
  const int64_t height = windows(x[2] + o.pad.before.h + o.pad.after.h, window.h, o.stride.h, 0);
  const int64_t width = windows(x[3] + o.pad.before.w + o.pad.after.w, window.w, o.stride.w, 0);
  if (height < 1 || width < 1)
    throw Error(
        fmt::format("a {} x {} kernel does not fit into an image of {}", window.h, window.w, x.str()));

  const Shape weight = filters(x);
  const int64_t fan_in = weight.elements() / o.out;
  const Initialiser uniform = Initialiser::kaiming_uniform_fan_in(fan_in);
  Signature s;
  s.y = {.shape = {x[0], o.out, height, width}};
  const Shape stored = o.matrix ? Shape{o.out, x[1]} : o.line ? in_line(weight) : weight;
  s.params.push_back({"weight", stored, o.weight_init.value_or(uniform)});
  if (o.bias) s.params.push_back({"bias", {o.out}, o.bias_init.value_or(uniform)});
  s.forward_flops = double(s.y.shape.elements()) * double(2 * fan_in + o.bias + o.relu);
  return s;
}

NodeId conv2d(Graph& graph, std::string name, NodeId x, Conv2dOptions options) {
  return graph.add(std::move(name), std::make_shared<Conv2d>(options), {x});
}

}  // namespace antichain
