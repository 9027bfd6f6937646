// The awkward cases of layer and group normalisation.
#include "layers/layer_norm.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

// As batch norm, these subtract near-equal sums.
constexpr double cancelling_rows = 2e-5;

OpCase rows(std::string name, Shape x, LayerNormOptions options = {}) {
  return {std::move(name), std::make_shared<LayerNorm>(options), {x}, cancelling_rows};
}

OpCase pixels(std::string name, Shape x, LayerNormOptions options = {}) {
  options.channels = true;
  options.eps = 1e-6f;
  return {std::move(name), std::make_shared<LayerNorm>(options), {x}, cancelling_rows};
}

}  // namespace

std::vector<OpCase> norm_cases() {
  return {
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
