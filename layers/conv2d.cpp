#include "layers/conv2d.h"

#include <fmt/format.h>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

Conv2d::Conv2d(Conv2dOptions o) : options(o) {
  const bool positive =
      o.out > 0 && o.kernel.h > 0 && o.kernel.w > 0 && o.stride.h > 0 && o.stride.w > 0 && o.groups > 0;
  if (!positive || o.pad.h < 0 || o.pad.w < 0)
    throw Error(fmt::format("{} has an option that is not positive", str()));
  if (o.out % o.groups != 0)
    throw Error(fmt::format("conv2d cannot divide {} filters into {} groups", o.out, o.groups));
}

std::string Conv2d::str() const {
  const Conv2dOptions& o = options;
  std::string init;
  if (o.weight_init) init += ", weight " + antichain::str(*o.weight_init);
  if (o.bias_init) init += ", bias " + antichain::str(*o.bias_init);
  return fmt::format("conv2d({}, kernel {}, stride {}, pad {}, groups {}, {}{}{})", o.out,
                     antichain::str(o.kernel), antichain::str(o.stride), antichain::str(o.pad), o.groups,
                     o.bias ? "bias" : "no bias", init, o.relu ? ", relu" : "");
}

std::shared_ptr<const Op> Conv2d::then(const Op& next) const {
  if (options.relu || next.type() != "relu") return nullptr;
  Conv2dOptions fused = options;
  fused.relu = true;
  return std::make_shared<Conv2d>(fused);
}

Signature Conv2d::infer(std::span<const Shape> inputs) const {
  check_inputs("conv2d", inputs, 1, 4);
  const Shape& x = inputs[0];
  const Conv2dOptions& o = options;
  if (x[1] % o.groups != 0)
    throw Error(fmt::format("conv2d cannot divide {} channels into {} groups", x[1], o.groups));
  const int64_t height = windows(x[2], o.kernel.h, o.stride.h, o.pad.h);
  const int64_t width = windows(x[3], o.kernel.w, o.stride.w, o.pad.w);
  if (height < 1 || width < 1)
    throw Error(
        fmt::format("a {} x {} kernel does not fit into an image of {}", o.kernel.h, o.kernel.w, x.str()));

  const int64_t fan_in = x[1] / o.groups * o.kernel.h * o.kernel.w;
  const Initialiser uniform = Initialiser::kaiming_uniform_fan_in(fan_in);
  Signature s;
  s.y = {.shape = {x[0], o.out, height, width}};
  s.params.push_back(
      {"weight", {o.out, x[1] / o.groups, o.kernel.h, o.kernel.w}, o.weight_init.value_or(uniform)});
  if (o.bias) s.params.push_back({"bias", {o.out}, o.bias_init.value_or(uniform)});
  s.forward_flops = double(s.y.shape.elements()) * double(2 * fan_in + o.bias + o.relu);
  return s;
}

NodeId conv2d(Graph& graph, std::string name, NodeId x, Conv2dOptions options) {
  return graph.add(std::move(name), std::make_shared<Conv2d>(options), {x});
}

}  // namespace antichain
