// These are the awkward cases of layer and group normalisation.
#include "layers/group_norm.h"
#include "layers/layer_norm.h"
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

}  // namespace

std::vector<OpCase> norm_cases() {
  return {
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
  };
}

}  // namespace antichain::harness
