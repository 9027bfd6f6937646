// These are the awkward cases of layer and group normalisation, and of operators whose weights are
// normalised.
#include "framework/computed.h"
#include "layers/conv2d.h"
#include "layers/elementwise.h"
#include "layers/group_norm.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/mean.h"
#include "layers/spectral_norm.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

// Like batch norm, these subtract near-equal sums.
constexpr double cancelling_rows = 2e-5;

OpCase rows(std::string name, Shape x, LayerNormOptions options = {}) {
  return {std::move(name), std::make_shared<LayerNorm>(options), {x}, cancelling_rows};
}

OpCase pixels(std::string name, Shape x, LayerNormOptions options = {}) {
  options.channels = true;
  options.eps = 1e-6f;
  return {std::move(name), std::make_shared<LayerNorm>(options), {x}, cancelling_rows};
}

OpCase groups(std::string name, Shape x, GroupNormOptions options) {
  return {std::move(name), std::make_shared<GroupNorm>(options), {x}, cancelling_rows};
}

// In bf16 the computed weight is rounded, too.
OpCase computed(std::string name, ComputedOptions o, Shape x) {
  return {.name = std::move(name),
          .op = std::make_shared<Computed>(std::move(o)),
          .x = {x},
          .tolerance = cancelling_rows,
          .input_roundings = 3,
          .output_roundings = 2};
}

// Weight standardisation: Qiao, Wang, Liu, Shen & Yuille, "Micro-Batch Training with Batch-Channel
// Normalization and Weight Standardization", 2019.
OpCase standardised(std::string name, std::shared_ptr<const Op> of, Shape x, Shape weight, bool masked) {
  const auto formula = [](std::vector<std::string> steps) {
    return std::make_shared<Elementwise>(ElementwiseOptions{.steps = std::move(steps)});
  };
  std::vector<int> axes;
  for (int axis = 2; axis <= weight.rank(); ++axis) axes.push_back(axis);
  const auto mean = std::make_shared<Mean>(axes, true);
  ComputedOptions o{.of = std::move(of),
                    .parameters = {{"v", weight, Initialiser::normal(1)}},
                    .steps = {{mean, {"v"}},
                              {formula({"subtract x0 x1"}), {"v", "s0"}},
                              {formula({"multiply x0 x0"}), {"s1"}},
                              {mean, {"s2"}},
                              {formula({"add x1 0.01", "sqrt s0", "divide x0 s1"}), {"s1", "s3"}}},
                    .values = {{"weight", 4}}};
  if (masked) {
    o.buffers = {{"mask", weight, Initialiser::constant(1)}};
    o.steps.push_back({formula({"multiply x0 x1"}), {"mask", "s4"}});
    o.values = {{"weight", 5}};
  }
  return computed(std::move(name), std::move(o), x);
}

OpCase spectral(std::string name, std::shared_ptr<const Op> of, Shape x, Shape weight, int iterations) {
  ComputedOptions o{.of = std::move(of),
                    .parameters = {{"w", weight, Initialiser::normal(1)}},
                    .steps = {{std::make_shared<SpectralNorm>(SpectralNormOptions{iterations}), {"w"}}},
                    .values = {{"weight", 0}}};
  return computed(std::move(name), std::move(o), x);
}

}  // namespace

std::vector<OpCase> norm_cases() {
  return {
      spectral("computed_spectral_convolution",
               std::make_shared<Conv2d>(Conv2dOptions{.out = 16, .kernel = 3, .pad = 1}), {3, 16, 6, 5},
               {16, 16, 3, 3}, 1),
      spectral("computed_spectral_linear", std::make_shared<Linear>(LinearOptions{.out = 7}), {5, 11},
               {7, 11}, 2),
      standardised("computed_convolution",
                   std::make_shared<Conv2d>(Conv2dOptions{.out = 20, .kernel = 3, .pad = 1}), {3, 10, 6, 5},
                   {20, 10, 3, 3}, false),
      standardised("computed_convolution_of_blocks",
                   std::make_shared<Conv2d>(Conv2dOptions{.out = 32, .kernel = 1, .bias = false}),
                   {2, 16, 6, 5}, {32, 16, 1, 1}, true),
      standardised("computed_matrix",
                   std::make_shared<Conv2d>(Conv2dOptions{.out = 12, .kernel = 1, .matrix = true}),
                   {2, 10, 4, 5}, {12, 10}, true),
      standardised("computed_depthwise",
                   std::make_shared<Conv2d>(Conv2dOptions{.out = 32, .kernel = 3, .pad = 1, .groups = 32}),
                   {2, 32, 6, 5}, {32, 1, 3, 3}, false),
      standardised("computed_line",
                   std::make_shared<Conv2d>(Conv2dOptions{.out = 12, .kernel = {1, 3}, .line = true}),
                   {2, 10, 1, 9}, {12, 10, 3}, true),
      standardised("computed_linear", std::make_shared<Linear>(LinearOptions{.out = 7}), {5, 11}, {7, 11},
                   true),
      groups("group_norm_of_blocks", {3, 32, 5, 5}, {.groups = 2}),
      groups("group_norm_within_blocks", {2, 32, 4, 5}, {.groups = 16}),
      groups("group_norm_across_blocks", {2, 40, 3, 5}, {.groups = 4}),
      groups("group_norm_odd", {3, 21, 5, 3}, {.groups = 7}),
      groups("group_norm_instance", {2, 17, 6, 6}, {.groups = 17}),
      groups("group_norm_one", {3, 10, 7, 5}, {.groups = 1, .eps = 1e-3f}),
      groups("group_norm_large", {2, 24, 37, 31}, {.groups = 3}),
      groups("group_norm_pixel", {5, 24, 1, 1}, {.groups = 3}),
      groups("group_norm_not_affine", {2, 12, 4, 4}, {.groups = 3, .affine = false}),
      groups("group_norm_rows", {5, 24}, {.groups = 4}),
      groups("group_norm_tokens", {3, 12, 7}, {.groups = 2}),
      groups("group_norm_five", {2, 6, 2, 3, 4}, {.groups = 3}),
      pixels("layer_norm_pixels_16", {5, 16, 7, 7}),
      pixels("layer_norm_pixels_odd", {3, 17, 5, 3}),
      pixels("layer_norm_pixels_8", {2, 8, 3, 3}),
      pixels("layer_norm_pixels_24", {2, 24, 4, 5}),
      pixels("layer_norm_pixels_96", {2, 96, 6, 7}),
      pixels("layer_norm_pixels_long", {1, 1100, 3, 2}),
      pixels("layer_norm_pixels_one", {5, 10, 1, 1}),
      pixels("layer_norm_pixels_many", {3, 20, 37, 31}),
      pixels("layer_norm_pixels_no_bias", {2, 32, 3, 3}, {.bias = false}),
      pixels("layer_norm_pixels_not_affine", {2, 19, 3, 3}, {.affine = false}),
      rows("layer_norm_rows", {5, 64}),
      rows("layer_norm_rows_odd", {35, 17}),
      rows("layer_norm_rows_short", {3, 3}),  // two numbers have no gradient but that of eps
      rows("layer_norm_rows_long", {2, 2500}),
      rows("layer_norm_tokens", {3, 37, 48}, {.over = {48}}),
      rows("layer_norm_last_two", {3, 5, 4, 6}, {.over = {4, 6}}),
      rows("layer_norm_image", {3, 5, 4, 6}, {.over = {5, 4, 6}}),
      rows("layer_norm_last_of_four", {2, 5, 3, 32}),
      rows("layer_norm_five", {2, 3, 2, 3, 20}, {.over = {20}, .eps = 1e-3f}),
      rows("layer_norm_rows_no_bias", {3, 33}, {.bias = false}),
      rows("layer_norm_rows_not_affine", {3, 33}, {.affine = false}),
      rows("rms_norm_tokens", {3, 7, 48}, {.eps = 1e-6f, .bias = false, .centred = false}),
      rows("rms_norm_odd", {5, 33}, {.eps = 1e-5f, .affine = false, .centred = false}),
      rows("rms_norm_last_two", {3, 5, 4, 6}, {.over = {4, 6}, .centred = false}),
      pixels("rms_norm_pixels", {2, 24, 4, 5}, {.bias = false, .centred = false}),
  };
}

}  // namespace antichain::harness
