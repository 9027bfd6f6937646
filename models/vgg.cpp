#include "models/vgg.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {
namespace {

// Table 1, column D: filters of 3 x 3 convolutions, 0 for a 2 x 2 max pool.
constexpr int configuration_d[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                   0,  512, 512, 512, 0,   512, 512, 512, 0};

// Weights N(0, 2 / fan_out), biases 0, as torchvision's VGG.
NodeId conv(Graph& g, std::string name, NodeId x, int64_t out) {
  return conv2d(g, std::move(name), x,
                {.out = out,
                 .kernel = 3,
                 .pad = 1,
                 .weight_init = Initialiser::kaiming_normal_fan_out(out * 9),
                 .bias_init = Initialiser::constant(0)});
}

// Weights N(0, 2 / fan_in). torchvision's N(0, 0.01) is meant for 4096 inputs and more, where it is nearly
// that; with 512 it would shrink the logits, and every gradient, by about 40 over the three layers.
NodeId fully_connected(Graph& g, std::string name, NodeId x, int64_t out) {
  return linear(g, std::move(name), x,
                {.out = out,
                 .weight_init = Initialiser::normal(std::sqrt(2.0 / double(g.shape(x)[1]))),
                 .bias_init = Initialiser::constant(0)});
}

}  // namespace

Graph vgg16(const ModelOptions& options) {
  Graph g("vgg16");
  const ModelInputs in = add_inputs(g, options);
  NodeId x = in.images;
  int index = 0;  // within torchvision's `features`
  const auto feature = [&] { return fmt::format("features.{}", index++); };
  for (int out : configuration_d) {
    if (out == 0) {
      x = max_pool(g, feature(), x, {.kernel = 2, .stride = 2});
    } else {
      x = conv(g, feature(), x, out);
      x = relu(g, feature(), x);
    }
  }
  x = flatten(g, "flatten", x);
  x = relu(g, "classifier.1", fully_connected(g, "classifier.0", x, 512));
  x = dropout(g, "classifier.2", x, 0.5);
  x = relu(g, "classifier.4", fully_connected(g, "classifier.3", x, 512));
  x = dropout(g, "classifier.5", x, 0.5);
  add_loss(g, in, fully_connected(g, "classifier.6", x, options.classes), options);
  return g;
}

}  // namespace antichain
