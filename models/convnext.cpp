#include "models/convnext.h"

#include <fmt/format.h>

#include "layers/activate.h"
#include "layers/add.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/layer_norm.h"
#include "layers/layer_scale.h"
#include "layers/linear.h"
#include "layers/stochastic_depth.h"

namespace antichain {
namespace {

// A stage has `blocks` blocks on planes of one size: section 2.2, "changing stage compute ratio".
struct ConvNeXtStage {
  int64_t channels;
  int blocks;
};
constexpr ConvNeXtStage convnext_stages[] = {{96, 3}, {192, 3}, {384, 9}, {768, 3}};
constexpr int convnext_blocks = 18;

// Weights start from N(0, 0.02²) and biases at 0, as in torchvision (which cuts the distribution at ±2, a
// hundred standard deviations).
NodeId convnext_conv(Graph& g, std::string name, NodeId x, Conv2dOptions options) {
  options.weight_init = Initialiser::normal(0.02);
  options.bias_init = Initialiser::constant(0);
  return conv2d(g, std::move(name), x, options);
}

NodeId convnext_norm(Graph& g, std::string name, NodeId x) {
  return layer_norm(g, std::move(name), x, {.channels = true, .eps = 1e-6f});
}

NodeId convnext_block(Graph& g, const std::string& name, NodeId x, double dropped) {
  const int64_t channels = g.shape(x)[1];
  const std::string part = name + ".block.";
  NodeId y =
      convnext_conv(g, part + "0", x, {.out = channels, .kernel = 7, .pad = 3, .groups = int(channels)});
  y = convnext_norm(g, part + "2", y);
  y = convnext_conv(g, part + "3", y, {.out = 4 * channels, .kernel = 1, .matrix = true});
  y = gelu(g, part + "4", y);
  y = convnext_conv(g, part + "5", y, {.out = channels, .kernel = 1, .matrix = true});
  y = layer_scale(g, name + ".layer_scale", y);
  if (dropped > 0) y = stochastic_depth(g, name + ".stochastic_depth", y, dropped);
  return add(g, name + ".add", y, x);
}

}  // namespace

Graph convnext_tiny(const ModelOptions& options) {
  const ModelOptions o = completed(options, usual_convnext_tiny);
  Graph g("convnext_tiny");
  const ImageInputs in = add_image_inputs(g, o);
  const int patch = o.form == Form::imagenet ? 4 : 2;
  NodeId x = in.images;
  int feature = 0, number = 0;  // the number counts the blocks of all stages
  for (const ConvNeXtStage& stage : convnext_stages) {
    if (feature == 0) {
      x = convnext_conv(g, "features.0.0", x, {.out = stage.channels, .kernel = patch, .stride = patch});
      x = convnext_norm(g, "features.0.1", x);
    } else {
      x = convnext_norm(g, fmt::format("features.{}.0", feature), x);
      x = convnext_conv(g, fmt::format("features.{}.1", feature), x,
                        {.out = stage.channels, .kernel = 2, .stride = 2});
    }
    for (int i = 0; i < stage.blocks; ++i, ++number)
      x = convnext_block(g, fmt::format("features.{}.{}", feature + 1, i), x,
                         *o.stochastic_depth * number / (convnext_blocks - 1));
    feature += 2;
  }
  x = convnext_norm(g, "classifier.0", global_average_pool(g, "avgpool", x));
  x = flatten(g, "classifier.1", x);
  x = linear(g, "classifier.2", x,
             {.out = o.classes,
              .weight_init = Initialiser::normal(o.form == Form::imagenet ? 0.02 : 0),
              .bias_init = Initialiser::constant(0)});
  add_loss(g, in.labels, x, o);
  return g;
}

}  // namespace antichain
