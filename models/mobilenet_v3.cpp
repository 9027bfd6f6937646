#include "models/mobilenet_v3.h"

#include <fmt/format.h>

#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "models/inverted_residual.h"

namespace antichain {
namespace {

// This is a row of table 1.
struct V3Block {
  int kernel;
  int64_t expanded, out;
  bool gated;
  ActivationNode activation;
  int stride;
};
constexpr V3Block v3_blocks[] = {
    {3, 16, 16, false, relu, 1},       {3, 64, 24, false, relu, 2},       {3, 72, 24, false, relu, 1},
    {5, 72, 40, true, relu, 2},        {5, 120, 40, true, relu, 1},       {5, 120, 40, true, relu, 1},
    {3, 240, 80, false, hardswish, 2}, {3, 200, 80, false, hardswish, 1}, {3, 184, 80, false, hardswish, 1},
    {3, 184, 80, false, hardswish, 1}, {3, 480, 112, true, hardswish, 1}, {3, 672, 112, true, hardswish, 1},
    {5, 672, 160, true, hardswish, 2}, {5, 960, 160, true, hardswish, 1}, {5, 960, 160, true, hardswish, 1},
};
constexpr int64_t first_halved = 64;  // the channels within the first block of stride 2

constexpr BatchNormOptions v3_norm = {.eps = 1e-3f, .momentum = 0.01f};

// Returns a quarter of the channels, rounded to a multiple of 8 that is no less than nine tenths of it.
int64_t quarter_of(int64_t channels) {
  const int64_t quarter = channels / 4, rounded = (quarter + 4) / 8 * 8;
  return 10 * rounded < 9 * quarter ? rounded + 8 : rounded;
}

// Weights start from N(0, 0.01²) and biases at 0, as in torchvision.
LinearOptions v3_linear(int64_t out) {
  return {.out = out, .weight_init = Initialiser::normal(0.01), .bias_init = Initialiser::constant(0)};
}

}  // namespace

Graph mobilenet_v3_large(const ModelOptions& options) {
  const ModelOptions o = completed(options, usual_mobilenet_v3_large);
  const bool large = o.form == Form::imagenet;
  Graph g("mobilenet_v3_large");
  const ImageInputs in = add_image_inputs(g, o);
  int number = 0;  // within torchvision's `features`
  const auto feature = [&] { return fmt::format("features.{}", number++); };
  NodeId x = normed_conv(
      g, feature(), in.images,
      {.out = 16, .kernel = 3, .stride = large ? 2 : 1, .norm = v3_norm, .activation = hardswish});
  for (const V3Block& row : v3_blocks) {
    const std::string block = feature();
    x = inverted_residual(g, block, block + ".block", x,
                          {.expanded = row.expanded,
                           .out = row.out,
                           .kernel = row.kernel,
                           .stride = large || row.expanded != first_halved ? row.stride : 1,
                           .squeezed = row.gated ? quarter_of(row.expanded) : 0,
                           .gate = hardsigmoid,
                           .norm = v3_norm,
                           .activation = row.activation});
  }
  x = normed_conv(g, feature(), x, {.out = 960, .norm = v3_norm, .activation = hardswish});
  x = flatten(g, "flatten", global_average_pool(g, "avgpool", x));
  x = hardswish(g, "classifier.1", linear(g, "classifier.0", x, v3_linear(1280)));
  x = dropout(g, "classifier.2", x, *o.dropout);
  add_loss(g, in.labels, linear(g, "classifier.3", x, v3_linear(o.classes)), o);
  return g;
}

}  // namespace antichain
