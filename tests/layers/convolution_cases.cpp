// Lists the cases of convolutions that modern networks have: dilation, different padding at either end,
// images of one pixel, and transposed convolutions.
#include "layers/conv2d.h"
#include "layers/conv_transpose2d.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

// The tolerance is OpCase's own. It is enough for Winograd's transforms, too, as the CPU computes them.
OpCase convolution(std::string name, Shape x, Conv2dOptions options) {
  return {std::move(name), std::make_shared<Conv2d>(options), {x}};
}

// A convolution with one filter a channel.
OpCase depthwise(std::string name, Shape x, Conv2dOptions options) {
  options.out = x[1];
  options.groups = int(x[1]);
  return convolution(std::move(name), x, options);
}

// A bias is added to a number that is rounded for storage, and the sum is rounded again.
OpCase transposed(std::string name, Shape x, ConvTranspose2dOptions options) {
  return {.name = std::move(name),
          .op = std::make_shared<ConvTranspose2d>(options),
          .x = {x},
          .output_roundings = options.bias ? 2.0 : 1.0};
}

}  // namespace

std::vector<OpCase> convolution_cases() {
  return {
      convolution("conv_dilated", {2, 16, 9, 8}, {.out = 32, .kernel = 3, .pad = 2, .dilation = 2}),
      convolution("conv_dilated_odd", {3, 17, 11, 7},
                  {.out = 20, .kernel = 3, .stride = 2, .pad = 1, .dilation = {3, 2}, .bias = false}),
      convolution("conv_dilated_stem", {2, 3, 13, 12}, {.out = 16, .kernel = 3, .pad = 2, .dilation = 2}),
      convolution("conv_dilated_groups", {2, 32, 8, 7},
                  {.out = 32, .kernel = 3, .pad = 2, .dilation = 2, .groups = 8, .bias = false}),
      convolution("conv_dilated_winograd_size", {3, 32, 8, 8},
                  {.out = 32, .kernel = 3, .pad = 2, .dilation = 2, .bias = false}),
      convolution("conv_pad_after", {2, 16, 7, 6}, {.out = 20, .kernel = 2, .pad = {Extent(0), Extent(1)}}),
      convolution("conv_pad_uneven", {3, 20, 7, 6},
                  {.out = 16, .kernel = 3, .stride = 2, .pad = {{0, 2}, {1, 1}}, .bias = false}),
      convolution("conv_pad_uneven_stem", {2, 3, 8, 9},
                  {.out = 32, .kernel = 3, .stride = 2, .pad = {Extent(0), Extent(1)}}),
      convolution("conv_pad_uneven_winograd_size", {3, 32, 8, 8},
                  {.out = 32, .kernel = 3, .pad = {Extent(2), Extent(0)}, .bias = false}),
      convolution("conv_winograd_tile", {8, 32, 4, 4}, {.out = 48, .kernel = 3, .pad = 1, .bias = false}),
      convolution("conv_winograd_four_pixels", {16, 32, 2, 2}, {.out = 48, .kernel = 3, .pad = 1}),
      convolution("conv_winograd_one_image", {1, 20, 16, 13}, {.out = 33, .kernel = 3, .pad = 1}),
      convolution("conv_winograd_no_pad", {2, 40, 13, 13}, {.out = 24, .kernel = 3}),
      convolution("conv_pad_uneven_groups", {2, 32, 6, 6},
                  {.out = 32, .kernel = 3, .pad = {{1, 0}, {0, 1}}, .groups = 4, .bias = false}),
      convolution("conv_squeeze", {5, 96, 1, 1}, {.out = 4, .kernel = 1}),
      convolution("conv_excite", {5, 4, 1, 1}, {.out = 96, .kernel = 1}),
      convolution("conv_squeeze_odd", {1, 20, 1, 1}, {.out = 17, .kernel = 1}),
      convolution("conv_matrix", {3, 32, 5, 4}, {.out = 48, .kernel = 1, .matrix = true}),
      convolution("conv_matrix_odd", {2, 20, 6, 7}, {.out = 17, .kernel = 1, .bias = false, .matrix = true}),
      depthwise("depthwise_3x3", {5, 32, 7, 6}, {.kernel = 3, .pad = 1, .bias = false}),
      depthwise("depthwise_3x3_of_4_channels", {2, 4, 9, 8}, {.kernel = 3, .pad = 1, .bias = false}),
      depthwise("depthwise_5x5_of_3_channels", {2, 3, 8, 9}, {.kernel = 5, .stride = 2, .pad = 2}),
      depthwise("depthwise_3x3_many_rows", {2, 17, 21, 25}, {.kernel = 3, .pad = 1}),
      depthwise("depthwise_3x3_stride_2", {3, 24, 9, 12}, {.kernel = 3, .stride = 2, .pad = 1}),
      depthwise("depthwise_3x3_of_a_pixel", {70, 20, 1, 1}, {.kernel = 3, .pad = 1, .bias = false}),
      depthwise("depthwise_3x3_strides", {2, 16, 8, 7}, {.kernel = 3, .stride = {1, 3}, .pad = 1}),
      depthwise("depthwise_3x3_dilated", {2, 32, 8, 7}, {.kernel = 3, .pad = 2, .dilation = 2}),
      depthwise("depthwise_5x5", {3, 48, 8, 9}, {.kernel = 5, .pad = 2, .bias = false}),
      depthwise("depthwise_5x5_stride_2", {5, 20, 8, 7}, {.kernel = 5, .stride = 2, .pad = 2}),
      depthwise("depthwise_5x5_pad_uneven", {2, 16, 8, 8},
                {.kernel = 5, .stride = 2, .pad = {Extent(1), Extent(2)}, .bias = false}),
      depthwise("depthwise_7x7", {2, 32, 14, 14}, {.kernel = 7, .pad = 3}),
      depthwise("depthwise_7x7_of_four_pixels", {5, 24, 2, 2}, {.kernel = 7, .pad = 3}),
      depthwise("depthwise_7x7_stride_2", {2, 10, 11, 13}, {.kernel = 7, .stride = 2, .pad = 3}),
      depthwise("depthwise_6x2", {2, 20, 9, 8}, {.kernel = {6, 2}, .pad = {Extent(2, 0), Extent(3, 1)}}),
      depthwise("depthwise_6x9_stride_4", {3, 16, 13, 12}, {.kernel = {6, 9}, .stride = 4, .pad = 4}),
      depthwise("depthwise_1x1_stride_2", {2, 32, 5, 4}, {.kernel = 1, .stride = 2}),
      depthwise("depthwise_pad_of_the_kernel", {2, 16, 4, 4}, {.kernel = 2, .pad = 2}),
      // The CPU computes rows of equal tiles, of 4, 7 or 8 results, in a way of its own.
      depthwise("depthwise_3x3_rows_of_4", {5, 24, 5, 4}, {.kernel = 3, .pad = 1}),
      depthwise("depthwise_3x3_rows_of_7", {2, 16, 6, 7}, {.kernel = 3, .pad = 1, .bias = false}),
      depthwise("depthwise_3x3_rows_of_24", {1, 20, 5, 24}, {.kernel = 3, .pad = 1}),
      depthwise("depthwise_3x3_to_rows_of_4", {3, 16, 8, 8}, {.kernel = 3, .stride = 2, .pad = 1}),
      depthwise("depthwise_3x3_to_rows_of_24", {1, 16, 6, 48}, {.kernel = 3, .stride = 2, .pad = 1}),
      depthwise("depthwise_3x3_to_fewer_rows_of_8", {2, 16, 9, 8}, {.kernel = 3, .stride = {2, 1}, .pad = 1}),
      depthwise("depthwise_5x5_rows_of_4", {3, 20, 4, 4}, {.kernel = 5, .pad = 2, .bias = false}),
      depthwise("depthwise_5x5_rows_of_8", {3, 16, 8, 8}, {.kernel = 5, .pad = 2}),
      depthwise("depthwise_5x5_to_rows_of_7", {2, 16, 9, 14}, {.kernel = 5, .stride = 2, .pad = 2}),
      depthwise("depthwise_7x7_rows_of_4", {3, 16, 4, 4}, {.kernel = 7, .pad = 3}),
      depthwise("depthwise_7x7_rows_of_24", {1, 16, 5, 24}, {.kernel = 7, .pad = 3}),
      transposed("conv_transpose_2x2_stride_2", {3, 32, 5, 4}, {.out = 16, .kernel = 2, .stride = 2}),
      transposed("conv_transpose_4x4_stride_2", {2, 32, 4, 5},
                 {.out = 48, .kernel = 4, .stride = 2, .pad = 1, .bias = false}),
      transposed("conv_transpose_line", {2, 20, 1, 7},
                 {.out = 10, .kernel = {1, 4}, .stride = {1, 2}, .pad = {0, 1}, .line = true}),
      transposed("conv_transpose_output_pad", {2, 20, 4, 5},
                 {.out = 17, .kernel = 3, .stride = 2, .pad = 1, .output_pad = 1}),
      transposed("conv_transpose_3x3", {2, 16, 6, 6}, {.out = 32, .kernel = 3, .pad = 1}),
      transposed("conv_transpose_to_an_image", {2, 16, 7, 6}, {.out = 3, .kernel = 4, .stride = 2, .pad = 1}),
      transposed("conv_transpose_of_an_image", {2, 3, 7, 6}, {.out = 16, .kernel = 5, .stride = 3}),
      transposed("conv_transpose_from_a_pixel", {5, 40, 1, 1}, {.out = 32, .kernel = 4, .bias = false}),
      transposed("conv_transpose_dilated", {2, 16, 5, 4},
                 {.out = 20, .kernel = 3, .stride = 2, .pad = 2, .output_pad = {1, 0}, .dilation = 2}),
      transposed("conv_transpose_uneven", {2, 10, 4, 6},
                 {.out = 16, .kernel = {3, 2}, .stride = {3, 1}, .pad = {1, 0}, .output_pad = {2, 0}}),
      transposed("conv_transpose_groups", {2, 32, 5, 4},
                 {.out = 64, .kernel = 3, .stride = 2, .pad = 1, .groups = 2, .bias = false}),
      transposed("conv_transpose_groups_odd", {2, 10, 4, 4},
                 {.out = 20, .kernel = 3, .stride = 2, .pad = 1, .groups = 5}),
      transposed("conv_transpose_depthwise", {3, 20, 5, 6},
                 {.out = 20, .kernel = 4, .stride = 2, .pad = 1, .groups = 20, .bias = false}),
  };
}

}  // namespace antichain::harness
