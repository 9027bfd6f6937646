#include "models/alexnet.h"

#include "layers/adaptive_pool.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {

// Weights and biases start as PyTorch's layers initialise them, U(±1 / sqrt(fan_in)): torchvision changes
// nothing.
Graph alexnet(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  const bool large = o.form == Form::imagenet;
  const Conv2dOptions stem = large ? Conv2dOptions{.out = 64, .kernel = 11, .stride = 4, .pad = 2}
                                   : Conv2dOptions{.out = 64, .kernel = 3, .stride = 2, .pad = 1};
  const PoolOptions pool{.kernel = large ? 3 : 2, .stride = 2};

  Graph g("alexnet");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = relu(g, "features.1", conv2d(g, "features.0", in.images, stem));
  x = max_pool(g, "features.2", x, pool);
  x = relu(g, "features.4", conv2d(g, "features.3", x, {.out = 192, .kernel = 5, .pad = 2}));
  x = max_pool(g, "features.5", x, pool);
  x = relu(g, "features.7", conv2d(g, "features.6", x, {.out = 384, .kernel = 3, .pad = 1}));
  x = relu(g, "features.9", conv2d(g, "features.8", x, {.out = 256, .kernel = 3, .pad = 1}));
  x = relu(g, "features.11", conv2d(g, "features.10", x, {.out = 256, .kernel = 3, .pad = 1}));
  x = max_pool(g, "features.12", x, pool);
  if (large) x = adaptive_average_pool(g, "avgpool", x, 6);

  x = dropout(g, "classifier.0", flatten(g, "flatten", x), *o.dropout);
  x = relu(g, "classifier.2", linear(g, "classifier.1", x, {.out = 4096}));
  x = dropout(g, "classifier.3", x, *o.dropout);
  x = relu(g, "classifier.5", linear(g, "classifier.4", x, {.out = 4096}));
  add_loss(g, in.labels, linear(g, "classifier.6", x, {.out = o.classes}), o);
  return g;
}

}  // namespace antichain
