#include "models/vgg.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/adaptive_pool.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {
namespace {

// Table 1, column D: these are the filters of 3 x 3 convolutions; 0 means a 2 x 2 max pool.
constexpr int configuration_d[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                   0,  512, 512, 512, 0,   512, 512, 512, 0};

// Weights start from N(0, 2 / fan_out) and biases at 0, as in torchvision's VGG.
NodeId conv(Graph& g, std::string name, NodeId x, int64_t out) {
  return conv2d(g, std::move(name), x,
                {.out = out,
                 .kernel = 3,
                 .pad = 1,
                 .weight_init = Initialiser::kaiming_normal_fan_out(out * 9),
                 .bias_init = Initialiser::constant(0)});
}

NodeId features(Graph& g, NodeId x) {
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
  return x;
}

// Weights start from N(0, 0.01²), as torchvision's, which is meant for 4096 inputs and more. With the CIFAR
// form's 512 that would shrink the logits, and every gradient, by about 40 over the three layers, so the
// CIFAR form uses N(0, 2 / fan_in).
NodeId fully_connected(Graph& g, std::string name, NodeId x, int64_t out, Form form) {
  const double stddev = form == Form::imagenet ? 0.01 : std::sqrt(2.0 / double(g.shape(x)[1]));
  return linear(
      g, std::move(name), x,
      {.out = out, .weight_init = Initialiser::normal(stddev), .bias_init = Initialiser::constant(0)});
}

}  // namespace

Graph vgg16(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  const int64_t width = o.form == Form::imagenet ? 4096 : 512;
  Graph g("vgg16");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = features(g, in.images);
  if (o.form == Form::imagenet) x = adaptive_average_pool(g, "avgpool", x, 7);
  x = flatten(g, "flatten", x);
  x = relu(g, "classifier.1", fully_connected(g, "classifier.0", x, width, o.form));
  x = dropout(g, "classifier.2", x, *o.dropout);
  x = relu(g, "classifier.4", fully_connected(g, "classifier.3", x, width, o.form));
  x = dropout(g, "classifier.5", x, *o.dropout);
  add_loss(g, in.labels, fully_connected(g, "classifier.6", x, o.classes, o.form), o);
  return g;
}

}  // namespace antichain
