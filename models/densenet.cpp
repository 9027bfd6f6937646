#include "models/densenet.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {
namespace {

constexpr int64_t growth = 32;                // k: the channels that each layer adds
constexpr int layers_of[] = {6, 12, 24, 16};  // of the dense blocks

// Weights start from N(0, 2 / fan_in), as in torchvision's DenseNet: He et al., "Delving Deep into
// Rectifiers", ICCV 2015.
NodeId dense_conv(Graph& g, std::string name, NodeId x, int64_t out, int kernel, int stride = 1) {
  const double fan_in = double(g.shape(x)[1] * kernel * kernel);
  return conv2d(g, std::move(name), x,
                {.out = out,
                 .kernel = kernel,
                 .stride = stride,
                 .pad = kernel / 2,
                 .bias = false,
                 .weight_init = Initialiser::normal(std::sqrt(2 / fan_in))});
}

NodeId norm_relu(Graph& g, const std::string& norm, const std::string& activation, NodeId x) {
  return relu(g, activation, batch_norm(g, norm, x));
}

// Builds the bottleneck layer of section 3: a 1 x 1 convolution to 4 k channels before the 3 x 3. Every layer
// reads the outputs of all layers before it and appends its own, so that a single tensor crosses a cut
// between two layers.
NodeId dense_layer(Graph& g, const std::string& name, NodeId x) {
  NodeId y = norm_relu(g, name + ".norm1", name + ".relu1", x);
  y = dense_conv(g, name + ".conv1", y, 4 * growth, 1);
  y = norm_relu(g, name + ".norm2", name + ".relu2", y);
  y = dense_conv(g, name + ".conv2", y, growth, 3);
  return concat(g, name, {x, y});
}

// Halves the channels and the image.
NodeId transition(Graph& g, const std::string& name, NodeId x) {
  const int64_t channels = g.shape(x)[1];
  x = norm_relu(g, name + ".norm", name + ".relu", x);
  x = dense_conv(g, name + ".conv", x, channels / 2, 1);
  return average_pool(g, name + ".pool", x, {.kernel = 2, .stride = 2});
}

NodeId stem(Graph& g, NodeId images, Form form) {
  const bool large = form == Form::imagenet;
  NodeId x = dense_conv(g, "features.conv0", images, 2 * growth, large ? 7 : 3, large ? 2 : 1);
  x = norm_relu(g, "features.norm0", "features.relu0", x);
  return large ? max_pool(g, "features.pool0", x, {.kernel = 3, .stride = 2, .pad = 1}) : x;
}

}  // namespace

Graph densenet121(const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Graph g("densenet121");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = stem(g, in.images, o.form);
  for (int block = 1; block <= 4; ++block) {
    if (block > 1) x = transition(g, fmt::format("features.transition{}", block - 1), x);
    for (int layer = 1; layer <= layers_of[block - 1]; ++layer)
      x = dense_layer(g, fmt::format("features.denseblock{}.denselayer{}", block, layer), x);
  }
  x = norm_relu(g, "features.norm5", "features.relu5", x);
  x = flatten(g, "flatten", global_average_pool(g, "avgpool", x));
  x = linear(g, "classifier", x, {.out = o.classes, .bias_init = Initialiser::constant(0)});
  add_loss(g, in.labels, x, o);
  return g;
}

}  // namespace antichain
