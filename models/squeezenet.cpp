#include "models/squeezenet.h"

#include <cmath>

#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {
namespace {

// Weights start from U(±sqrt(6 / fan_in)) and biases at 0, as in torchvision's SqueezeNet (kaiming_uniform).
Conv2dOptions filters(int64_t in, int64_t out, int kernel) {
  return {.out = out,
          .kernel = kernel,
          .pad = kernel / 2,
          .weight_init = Initialiser::uniform(std::sqrt(6.0 / double(in * kernel * kernel))),
          .bias_init = Initialiser::constant(0)};
}

NodeId conv_relu(Graph& g, const std::string& name, NodeId x, int64_t out, int kernel) {
  x = conv2d(g, name, x, filters(g.shape(x)[1], out, kernel));
  return relu(g, name + "_activation", x);
}

// Section 3.2: a 1 x 1 layer squeezes the channels, then 1 x 1 and 3 x 3 layers of equal width expand them
// side by side.
NodeId fire(Graph& g, const std::string& name, NodeId x, int64_t squeeze, int64_t expand) {
  x = conv_relu(g, name + ".squeeze", x, squeeze, 1);
  const NodeId narrow = conv_relu(g, name + ".expand1x1", x, expand, 1);
  const NodeId wide = conv_relu(g, name + ".expand3x3", x, expand, 3);
  return concat(g, name, {narrow, wide});
}

NodeId pool(Graph& g, std::string name, NodeId x) {
  return max_pool(g, std::move(name), x, {.kernel = 3, .stride = 2, .ceil_mode = true});
}

}  // namespace

Graph squeezenet1_0(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Conv2dOptions stem = filters(3, 96, o.form == Form::imagenet ? 7 : 3);
  if (o.form == Form::imagenet) stem.stride = 2, stem.pad = 0;

  Graph g("squeezenet1_0");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = conv2d(g, "features.0", in.images, stem);
  x = relu(g, "features.1", x);
  x = pool(g, "features.2", x);
  x = fire(g, "features.3", x, 16, 64);
  x = fire(g, "features.4", x, 16, 64);
  x = fire(g, "features.5", x, 32, 128);
  x = pool(g, "features.6", x);
  x = fire(g, "features.7", x, 32, 128);
  x = fire(g, "features.8", x, 48, 192);
  x = fire(g, "features.9", x, 48, 192);
  x = fire(g, "features.10", x, 64, 256);
  x = pool(g, "features.11", x);
  x = fire(g, "features.12", x, 64, 256);

  // The last convolution is the classifier: one channel per class, averaged over the image.
  x = dropout(g, "classifier.0", x, *o.dropout);
  Conv2dOptions last = filters(512, o.classes, 1);
  last.weight_init = Initialiser::normal(0.01);  // as torchvision
  // The features are all positive, so a class's sum has the same sign for nearly every image. With
  // torchvision's biases of 0, the ReLU behind it would silence half of the classes from the start. The loss
  // does not depend on a common constant.
  if (o.form == Form::cifar) last.bias_init = Initialiser::constant(1);
  x = conv2d(g, "classifier.1", x, last);
  x = relu(g, "classifier.2", x);
  x = flatten(g, "flatten", global_average_pool(g, "classifier.3", x));
  add_loss(g, in.labels, x, o);
  return g;
}

}  // namespace antichain
