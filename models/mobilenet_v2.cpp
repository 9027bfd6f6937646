#include "models/mobilenet_v2.h"

#include <fmt/format.h>

#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "models/inverted_residual.h"

namespace antichain {
namespace {

// This is a row of table 2. The first of its `blocks` blocks has the stride.
struct V2Stage {
  int expansion;
  int64_t channels;
  int blocks, stride;
};
constexpr V2Stage v2_stages[] = {
    {1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
};
constexpr int64_t v2_unstrided_when_small = 24;  // the channels of a stage that halves only large images

}  // namespace

Graph mobilenet_v2(const ModelOptions& options) {
  const ModelOptions o = completed(options, usual_mobilenet_v2);
  const bool large = o.form == Form::imagenet;
  Graph g("mobilenet_v2");
  const ImageInputs in = add_image_inputs(g, o);
  int number = 0;  // within torchvision's `features`
  const auto feature = [&] { return fmt::format("features.{}", number++); };
  NodeId x = normed_conv(g, feature(), in.images,
                         {.out = 32, .kernel = 3, .stride = large ? 2 : 1, .activation = relu6});
  for (const V2Stage& row : v2_stages)
    for (int i = 0; i < row.blocks; ++i) {
      const bool strided = i == 0 && (large || row.channels != v2_unstrided_when_small);
      const std::string block = feature();
      x = inverted_residual(g, block, block + ".conv", x,
                            {.expanded = row.expansion * g.shape(x)[1],
                             .out = row.channels,
                             .stride = strided ? row.stride : 1,
                             .activation = relu6,
                             .flat_projection = true});
    }
  x = normed_conv(g, feature(), x, {.out = 1280, .activation = relu6});
  x = flatten(g, "flatten", global_average_pool(g, "avgpool", x));
  x = dropout(g, "classifier.0", x, *o.dropout);
  x = linear(
      g, "classifier.1", x,
      {.out = o.classes, .weight_init = Initialiser::normal(0.01), .bias_init = Initialiser::constant(0)});
  add_loss(g, in.labels, x, o);
  return g;
}

}  // namespace antichain
