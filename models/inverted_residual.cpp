#include "models/inverted_residual.h"

#include <fmt/format.h>

#include "layers/add.h"
#include "layers/global_pool.h"
#include "layers/multiply.h"
#include "layers/stochastic_depth.h"

namespace antichain {
namespace {

Conv2dOptions filters(int64_t out, int kernel, int stride, int groups, bool bias) {
  return {.out = out,
          .kernel = kernel,
          .stride = stride,
          .pad = kernel / 2,
          .groups = groups,
          .bias = bias,
          .weight_init = Initialiser::kaiming_normal_fan_out(out * kernel * kernel),
          .bias_init = Initialiser::constant(0)};
}

// Squeezes every channel's mean through two 1 x 1 convolutions, and scales the channel by the result.
NodeId squeeze_and_excitation(Graph& g, const std::string& name, NodeId x, const InvertedResidual& b) {
  NodeId gate = global_average_pool(g, name + ".avgpool", x);
  gate = conv2d(g, name + ".fc1", gate, filters(b.squeezed, 1, 1, 1, true));
  gate = b.squeeze_activation(g, name + ".activation", gate);
  gate = conv2d(g, name + ".fc2", gate, filters(b.expanded, 1, 1, 1, true));
  gate = b.gate(g, name + ".scale_activation", gate);
  return multiply(g, name, x, gate);
}

}  // namespace

NodeId normed_conv(Graph& g, const std::string& name, NodeId x, const NormedConv& c) {
  x = conv2d(g, name + ".0", x, filters(c.out, c.kernel, c.stride, c.groups, false));
  x = batch_norm(g, name + ".1", x, c.norm);
  return c.activation ? c.activation(g, name + ".2", x) : x;
}

NodeId inverted_residual(Graph& g, const std::string& block, const std::string& parts, NodeId x,
                         const InvertedResidual& b) {
  int number = 0;
  const auto next = [&] { return fmt::format("{}.{}", parts, number++); };
  const int64_t in = g.shape(x)[1];
  NodeId y = x;
  if (b.expanded != in)
    y = normed_conv(g, next(), y, {.out = b.expanded, .norm = b.norm, .activation = b.activation});
  y = normed_conv(g, next(), y,
                  {.out = b.expanded,
                   .kernel = b.kernel,
                   .stride = b.stride,
                   .groups = int(b.expanded),
                   .norm = b.norm,
                   .activation = b.activation});
  if (b.squeezed > 0) y = squeeze_and_excitation(g, next(), y, b);
  if (b.flat_projection) {
    y = conv2d(g, next(), y, filters(b.out, 1, 1, 1, false));
    y = batch_norm(g, next(), y, b.norm);
  } else {
    y = normed_conv(g, next(), y, {.out = b.out, .norm = b.norm});
  }
  if (b.stride != 1 || b.out != in) return y;
  if (b.stochastic_depth > 0) y = stochastic_depth(g, block + ".stochastic_depth", y, b.stochastic_depth);
  return add(g, block + ".add", y, x);
}

}  // namespace antichain
