// Lists the cases of interpolation.
#include "layers/interpolate.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

// A gradient's positions are computed in float32: of 70 columns, each is off by up to 4e-6 of the distance of
// two pixels, and a gradient adds up those of several.
OpCase interpolated(std::string name, Shape x, InterpolateOptions options) {
  return {.name = std::move(name), .op = std::make_shared<Interpolate>(options), .x = {x}, .tolerance = 2e-5};
}

}  // namespace

std::vector<OpCase> interpolate_cases() {
  using enum Interpolation;
  return {
      interpolated("nearest_twice", {3, 16, 5, 4}, {.scale = 2}),
      interpolated("nearest_odd", {2, 17, 5, 7}, {.size = Extent(8, 9)}),
      interpolated("nearest_smaller", {2, 10, 9, 8}, {.size = Extent(4, 3)}),
      interpolated("nearest_scales", {2, 20, 5, 6}, {.scale = Scale(1.7, 0.6)}),
      interpolated("nearest_of_a_pixel", {3, 20, 1, 1}, {.size = 4}),
      interpolated("bilinear_twice", {3, 16, 5, 4}, {.mode = bilinear, .scale = 2}),
      interpolated("bilinear_twice_corners", {3, 16, 5, 4},
                   {.mode = bilinear, .scale = 2, .align_corners = true}),
      interpolated("bilinear_odd", {2, 17, 5, 7}, {.mode = bilinear, .size = Extent(8, 9)}),
      interpolated("bilinear_odd_corners", {2, 17, 5, 7},
                   {.mode = bilinear, .size = Extent(8, 9), .align_corners = true}),
      interpolated("bilinear_smaller", {2, 10, 9, 8}, {.mode = bilinear, .size = Extent(4, 3)}),
      interpolated("bilinear_smaller_corners", {2, 10, 9, 8},
                   {.mode = bilinear, .size = Extent(4, 3), .align_corners = true}),
      interpolated("bilinear_scales", {2, 20, 5, 6}, {.mode = bilinear, .scale = Scale(1.7, 0.6)}),
      interpolated("bilinear_of_a_pixel", {3, 20, 1, 1}, {.mode = bilinear, .size = 4}),
      interpolated("bilinear_to_a_pixel", {3, 20, 4, 5},
                   {.mode = bilinear, .size = 1, .align_corners = true}),
      interpolated("bilinear_many", {2, 32, 9, 8}, {.mode = bilinear, .size = Extent(33, 70)}),
      interpolated("bilinear_same", {2, 16, 6, 6}, {.mode = bilinear, .size = 6}),
  };
}

}  // namespace antichain::harness
