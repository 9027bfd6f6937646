#include "models/efficientnet.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "models/inverted_residual.h"

namespace antichain {
namespace {

// This is a stage of table 1, from the second to the eighth. The first of its `blocks` blocks has the stride.
struct MBConvStage {
  int expansion, kernel, stride;
  int64_t channels;
  int blocks;
};
constexpr MBConvStage mbconv_stages[] = {
    {1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2},  {6, 3, 2, 80, 3},
    {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1},
};
constexpr int64_t unstrided_when_small = 24;  // the channels of a stage that halves only large images
constexpr int all_blocks = 16;

}  // namespace

Graph efficientnet_b0(const ModelOptions& options) {
  const ModelOptions o = completed(options, usual_efficientnet_b0);
  const bool large = o.form == Form::imagenet;
  Graph g("efficientnet_b0");
  const ImageInputs in = add_image_inputs(g, o);
  NodeId x = normed_conv(g, "features.0", in.images,
                         {.out = 32, .kernel = 3, .stride = large ? 2 : 1, .activation = silu});
  int stage = 0, number = 0;  // the number counts the blocks of all stages
  for (const MBConvStage& row : mbconv_stages) {
    ++stage;
    for (int i = 0; i < row.blocks; ++i) {
      const int64_t channels = g.shape(x)[1];
      const bool strided = i == 0 && (large || row.channels != unstrided_when_small);
      const std::string block = fmt::format("features.{}.{}", stage, i);
      x = inverted_residual(g, block, block + ".block", x,
                            {.expanded = row.expansion * channels,
                             .out = row.channels,
                             .kernel = row.kernel,
                             .stride = strided ? row.stride : 1,
                             .squeezed = channels / 4,
                             .squeeze_activation = silu,
                             .activation = silu,
                             .stochastic_depth = *o.stochastic_depth * number / all_blocks});
      ++number;
    }
  }
  x = normed_conv(g, fmt::format("features.{}", stage + 1), x, {.out = 1280, .activation = silu});
  x = flatten(g, "flatten", global_average_pool(g, "avgpool", x));
  x = dropout(g, "classifier.0", x, *o.dropout);
  // torchvision draws the weights by the number of classes.
  const int64_t drawn_for = large ? o.classes : 1000;
  x = linear(g, "classifier.1", x,
             {.out = o.classes,
              .weight_init = Initialiser::uniform(1 / std::sqrt(double(drawn_for))),
              .bias_init = Initialiser::constant(0)});
  add_loss(g, in.labels, x, o);
  return g;
}

}  // namespace antichain
