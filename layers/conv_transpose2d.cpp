#include "layers/conv_transpose2d.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {

ConvTranspose2d::ConvTranspose2d(ConvTranspose2dOptions o) : options(o) {
  const auto least = [](Extent e) { return std::min(e.h, e.w); };
  const bool positive =
      o.out > 0 && o.groups > 0 && least(o.kernel) > 0 && least(o.stride) > 0 && least(o.dilation) > 0;
  if (!positive || least(o.pad) < 0 || least(o.output_pad) < 0)
    throw Error(fmt::format("{} has an option that is not positive", str()));
  if (o.out % o.groups != 0)
    throw Error(
        fmt::format("{} cannot divide {} channels of its output into {} groups", str(), o.out, o.groups));
  if (o.output_pad.h >= o.stride.h || o.output_pad.w >= o.stride.w)
    throw Error(fmt::format("{} wants an output padding less than the stride", str()));
  if (o.line && o.kernel.h != 1)
    throw Error(fmt::format("{} has filters of one dimension, which only a kernel of one row has", str()));
}

std::string ConvTranspose2d::str() const {
  const ConvTranspose2dOptions& o = options;
  std::string init;
  if (o.weight_init) init += ", weight " + antichain::str(*o.weight_init);
  if (o.bias_init) init += ", bias " + antichain::str(*o.bias_init);
  return fmt::format(
      "conv_transpose2d({}, kernel {}, stride {}, pad {}, output pad {}, dilation {}, groups {}, {}{}{})",
      o.out, antichain::str(o.kernel), antichain::str(o.stride), antichain::str(o.pad),
      antichain::str(o.output_pad), antichain::str(o.dilation), o.groups, o.bias ? "bias" : "no bias",
      o.line ? ", line" : "", init);
}

Conv2d ConvTranspose2d::convolution(const Shape& x) const {
  const ConvTranspose2dOptions& o = options;
  return Conv2d({.out = x[1],
                 .kernel = o.kernel,
                 .stride = o.stride,
                 .pad = o.pad,
                 .dilation = o.dilation,
                 .groups = o.groups,
                 .bias = false});
}

Signature ConvTranspose2d::infer(std::span<const Shape> inputs) const {
  check_inputs("conv_transpose2d", inputs, 1, 4);
  const Shape& x = inputs[0];
  const ConvTranspose2dOptions& o = options;
  if (x[1] % o.groups != 0)
    throw Error(fmt::format("conv_transpose2d cannot divide {} channels into {} groups", x[1], o.groups));
  const Extent window = reach(o.kernel, o.dilation);
  const Shape y{x[0], o.out, (x[2] - 1) * o.stride.h - 2 * o.pad.h + window.h + o.output_pad.h,
                (x[3] - 1) * o.stride.w - 2 * o.pad.w + window.w + o.output_pad.w};
  if (y[2] < 1 || y[3] < 1) throw Error(fmt::format("{} leaves nothing of {}", str(), x.str()));

  const Signature transposed = convolution(x).infer({&y, 1});
  ANTICHAIN_CHECK(transposed.y.shape == x, "a transposed convolution's output is convolved to its input");
  const int64_t fan_in = o.out / o.groups * o.kernel.h * o.kernel.w;
  const Initialiser uniform = Initialiser::kaiming_uniform_fan_in(fan_in);
  Signature s;
  s.y = {.shape = y};
  const Shape filters = transposed.params[0].shape;
  s.params.push_back({"weight", o.line ? in_line(filters) : filters, o.weight_init.value_or(uniform)});
  if (o.bias) s.params.push_back({"bias", {o.out}, o.bias_init.value_or(uniform)});
  s.forward_flops = transposed.forward_flops + double(o.bias * y.elements());
  return s;
}

NodeId conv_transpose2d(Graph& graph, std::string name, NodeId x, ConvTranspose2dOptions options) {
  return graph.add(std::move(name), std::make_shared<ConvTranspose2d>(options), {x});
}

}  // namespace antichain
