#include "tests/layers/op_cases.h"

#include <algorithm>
#include <iterator>

#include "layers/adaptive_pool.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/flatten.h"
#include "layers/formula_loss.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"
#include "layers/softmax_cross_entropy.h"
#include "tests/layers/pointwise_cases.h"

namespace antichain::harness {
namespace {

// Winograd's transforms for 3 x 3 kernels of stride 1 multiply by up to 8 and divide again: Lavin & Gray,
// "Fast Algorithms for Convolutional Neural Networks", CVPR 2016. That costs one to two digits.
constexpr double winograd = 1e-4;
// Batch norm subtracts near-equal sums of all N H W values of a channel.
constexpr double cancelling = 2e-5;

OpCase conv(std::string name, Shape x, Conv2dOptions options, double tolerance = 5e-6) {
  return {std::move(name), std::make_shared<Conv2d>(options), {x}, tolerance};
}

OpCase conv_relu(std::string name, Shape x, Conv2dOptions options, double tolerance = 5e-6) {
  options.relu = true;
  return {std::move(name), std::make_shared<Conv2d>(options), {x}, tolerance, true};
}

OpCase linear_relu(std::string name, Shape x, LinearOptions options) {
  options.relu = true;
  return {.name = std::move(name), .op = std::make_shared<Linear>(options), .x = {x}, .fused = true};
}

// Its sums of gradients are float32, in order, of as many terms as a row is looked up.
OpCase embedded(std::string name, Shape ids, EmbeddingOptions options) {
  return {std::move(name), std::make_shared<Embedding>(options), {ids}};
}

OpCase pool(std::string name, Shape x, Pool::Kind kind, PoolOptions options) {
  return {std::move(name), std::make_shared<Pool>(kind, options), {x}};
}

template <class AnyOp>
OpCase simple(std::string name, std::vector<Shape> x) {
  return {std::move(name), std::make_shared<AnyOp>(), std::move(x)};
}

OpCase norm(std::string name, Shape x, bool relu = false) {
  return {std::move(name), std::make_shared<BatchNorm>(BatchNormOptions{.relu = relu}), {x}, cancelling};
}

OpCase norm_add(std::string name, Shape x, bool relu = false) {
  const BatchNormOptions options{.add = true, .relu = relu};
  return {std::move(name), std::make_shared<BatchNorm>(options), {x, x}, cancelling};
}

OpCase norm_function(std::string name, Shape x, ActivationFunction function) {
  return {.name = std::move(name),
          .op = std::make_shared<BatchNorm>(BatchNormOptions{.activation = function}),
          .x = {x},
          .tolerance = cancelling,
          .optional = true};
}

OpCase fixed_norm(std::string name, Shape x, BatchNormOptions options) {
  options.fixed_statistics = true;
  std::vector<Shape> inputs(options.add ? 2 : 1, x);
  return {.name = std::move(name),
          .op = std::make_shared<BatchNorm>(options),
          .x = inputs,
          .tolerance = cancelling,
          .optional = options.activation.has_value()};
}

OpCase loss(std::string name, int64_t samples, int64_t classes, float smoothing) {
  auto op = std::make_shared<SoftmaxCrossEntropy>(LossOptions{.label_smoothing = smoothing});
  return {std::move(name), op, {{samples, classes}, {samples}}};
}

OpCase loss_of_positions(std::string name, Shape logits, LossOptions options) {
  std::vector<int64_t> labels(logits.begin(), logits.end());
  labels.erase(options.classes_last ? labels.end() - 1 : labels.begin() + 1);
  return {std::move(name), std::make_shared<SoftmaxCrossEntropy>(options), {logits, Shape(labels)}};
}

OpCase loss_of_formula(std::string name, std::vector<Shape> x, FormulaLossOptions options) {
  return {std::move(name), std::make_shared<FormulaLoss>(std::move(options)), std::move(x)};
}

OpCase loss_of_shares(std::string name, int64_t samples, int64_t classes, float smoothing) {
  OpCase c = loss(std::move(name), samples, classes, smoothing);
  c.x[1] = c.x[0];
  return c;
}

OpCase adaptive(std::string name, Shape x, Extent out) {
  return {std::move(name), std::make_shared<AdaptiveAveragePool>(out), {x}};
}

}  // namespace

std::vector<OpCase> cases() {
  using enum Pool::Kind;
  std::vector<OpCase> all = {
      conv("conv_stem", {5, 3, 9, 7}, {.out = 16, .kernel = 3, .pad = 1, .bias = false}, winograd),
      conv("conv_3x3", {2, 16, 8, 8}, {.out = 32, .kernel = 3, .pad = 1, .bias = false}, winograd),
      conv("conv_3x3_bias_odd", {1, 17, 7, 5}, {.out = 20, .kernel = 3, .pad = 1}, winograd),
      conv("conv_3x3_of_four_pixels", {3, 16, 2, 2}, {.out = 32, .kernel = 3, .pad = 1}, winograd),
      conv("conv_3x3_wide", {3, 64, 8, 8}, {.out = 64, .kernel = 3, .pad = 1, .bias = false}, winograd),
      conv("conv_3x3_stride_2", {5, 16, 9, 9},
           {.out = 32, .kernel = 3, .stride = 2, .pad = 1, .bias = false}),
      conv("conv_1x1", {5, 20, 6, 7}, {.out = 17, .kernel = 1}),
      conv("conv_1x1_to_classes", {2, 32, 4, 4}, {.out = 10, .kernel = 1}),
      conv("conv_1x1_stride_2", {2, 32, 8, 8}, {.out = 64, .kernel = 1, .stride = 2, .bias = false}),
      conv("conv_5x5", {2, 10, 11, 8}, {.out = 16, .kernel = 5, .pad = 2}),
      conv("conv_5x5_no_pad_stride_3", {1, 3, 13, 12}, {.out = 10, .kernel = 5, .stride = 3}),
      conv("conv_1x3_tall", {2, 16, 7, 6}, {.out = 16, .kernel = {1, 3}, .pad = {0, 1}}),
      conv("conv_1x7", {2, 32, 7, 6}, {.out = 48, .kernel = {1, 7}, .pad = {0, 3}, .bias = false}),
      conv("conv_7x1_odd", {3, 20, 8, 3}, {.out = 17, .kernel = {7, 1}, .pad = {3, 0}}),
      conv("conv_3x1_strides", {2, 16, 9, 8}, {.out = 16, .kernel = {3, 1}, .stride = {2, 1}, .pad = {1, 0}}),
      conv("conv_7x7_stem", {2, 3, 23, 22}, {.out = 16, .kernel = 7, .stride = 2, .pad = 3, .bias = false}),
      conv("conv_11x11_stem", {2, 3, 35, 31}, {.out = 16, .kernel = 11, .stride = 4, .pad = 2}),
      conv("conv_5x5_to_a_pixel", {3, 32, 5, 5}, {.out = 48, .kernel = 5, .bias = false}),
      conv("conv_groups_32_of_4", {2, 128, 5, 6},
           {.out = 128, .kernel = 3, .pad = 1, .groups = 32, .bias = false}, winograd),
      conv("conv_groups_32_of_8_stride_2", {2, 256, 7, 6},
           {.out = 256, .kernel = 3, .stride = 2, .pad = 1, .groups = 32, .bias = false}),
      conv("conv_groups_4_row_of_strips", {3, 32, 4, 27},
           {.out = 32, .kernel = 3, .pad = 1, .groups = 8, .bias = false}),
      conv("conv_groups_4_stride_2_uneven", {2, 48, 9, 12},
           {.out = 48, .kernel = 3, .stride = 2, .pad = 1, .groups = 12, .bias = false}),
      conv("conv_groups_4_pixel", {2, 16, 1, 1},
           {.out = 16, .kernel = 3, .pad = 1, .groups = 4, .bias = false}),
      conv("conv_groups_8_wide", {2, 48, 6, 19},
           {.out = 48, .kernel = 3, .pad = 1, .groups = 6, .bias = false}),
      conv("conv_groups_16_bias", {3, 64, 6, 5}, {.out = 64, .kernel = 3, .pad = 1, .groups = 4}, winograd),
      conv("conv_groups_16_stride_2", {2, 48, 7, 6},
           {.out = 48, .kernel = 3, .stride = 2, .pad = 1, .groups = 3, .bias = false}),
      conv("conv_groups_4_rows_of_7", {3, 32, 5, 7},
           {.out = 32, .kernel = 3, .pad = 1, .groups = 8, .bias = false}),
      conv("conv_groups_narrowing", {2, 64, 5, 5},
           {.out = 32, .kernel = {1, 3}, .pad = {0, 1}, .groups = 2, .bias = false}),
      conv("conv_groups_2", {2, 32, 6, 6}, {.out = 32, .kernel = 3, .pad = 1, .groups = 2, .bias = false},
           winograd),
      conv("conv_groups_uneven", {1, 10, 6, 5}, {.out = 20, .kernel = 3, .pad = 1, .groups = 5}, winograd),
      conv("conv_depthwise", {5, 20, 7, 7}, {.out = 20, .kernel = 3, .stride = 2, .pad = 1, .groups = 20}),
      conv("conv_depthwise_16", {2, 32, 8, 8},
           {.out = 32, .kernel = 3, .pad = 1, .groups = 32, .bias = false}),
      conv("conv_depthwise_doubling", {2, 16, 5, 5}, {.out = 32, .kernel = 3, .pad = 1, .groups = 16}),
      conv("conv_line", {3, 10, 1, 9}, {.out = 20, .kernel = {1, 3}, .pad = {0, 1}, .line = true}),
      conv("conv_line_groups", {2, 32, 1, 12}, {.out = 32, .kernel = {1, 5}, .groups = 2, .line = true}),
      conv_relu("conv_relu_3x3", {2, 16, 8, 8}, {.out = 32, .kernel = 3, .pad = 1}, winograd),
      conv_relu("conv_relu_odd", {3, 10, 7, 5}, {.out = 17, .kernel = 3, .stride = 2, .pad = 1}),
      conv_relu("conv_relu_many_pixels", {5, 3, 19, 23}, {.out = 24, .kernel = 1}),
      conv_relu("conv_relu_without_bias", {2, 16, 5, 6}, {.out = 20, .kernel = {1, 3}, .bias = false}),
      norm("batch_norm_16", {5, 16, 7, 7}),
      {"batch_norm_not_affine",
       std::make_shared<BatchNorm>(BatchNormOptions{.affine = false}),
       {{3, 17, 4, 5}},
       cancelling},
      norm("batch_norm_odd", {1, 17, 5, 3}),
      norm("batch_norm_10", {3, 10, 4, 4}),
      norm("batch_norm_pixel", {5, 32, 1, 1}),
      norm("batch_norm_large", {3, 20, 37, 31}),
      norm("batch_norm_parts", {11, 16, 25, 15}, true),
      norm("batch_norm_relu", {5, 16, 7, 7}, true),
      norm("batch_norm_relu_odd", {3, 17, 5, 3}, true),
      norm("batch_norm_relu_tiny", {70, 24, 2, 2}, true),
      norm_add("batch_norm_add", {5, 32, 4, 4}),
      norm_add("batch_norm_add_odd", {2, 10, 9, 7}),
      norm_add("batch_norm_add_relu", {5, 32, 4, 4}, true),
      norm_add("batch_norm_add_relu_odd", {2, 17, 5, 7}, true),
      norm_function("batch_norm_hardswish", {5, 16, 7, 7}, ActivationFunction::hardswish),
      norm_function("batch_norm_hardswish_odd", {3, 17, 5, 3}, ActivationFunction::hardswish),
      norm_function("batch_norm_relu6", {5, 32, 6, 7}, ActivationFunction::relu6),
      norm_function("batch_norm_relu6_odd", {3, 17, 5, 3}, ActivationFunction::relu6),
      norm_function("batch_norm_silu", {5, 16, 7, 7}, ActivationFunction::silu),
      norm_function("batch_norm_silu_odd", {3, 17, 5, 3}, ActivationFunction::silu),
      norm_function("batch_norm_silu_tiny", {70, 24, 2, 2}, ActivationFunction::silu),
      fixed_norm("batch_norm_fixed", {5, 16, 7, 7}, {}),
      fixed_norm("batch_norm_fixed_odd", {3, 17, 5, 3}, {.relu = true}),
      fixed_norm("batch_norm_fixed_pixel", {1, 17, 1, 1}, {}),
      fixed_norm("batch_norm_fixed_add", {2, 10, 9, 7}, {.add = true}),
      fixed_norm("batch_norm_fixed_add_relu", {5, 32, 4, 4}, {.add = true, .relu = true}),
      fixed_norm("batch_norm_fixed_silu", {3, 17, 5, 3}, {.activation = ActivationFunction::silu}),
      simple<Relu>("relu_16", {{5, 16, 7, 7}}),
      simple<Relu>("relu_10", {{1, 10, 3, 5}}),
      simple<Relu>("relu_rows", {{5, 17}}),
      pool("max_pool_2", {5, 16, 8, 8}, max, {}),
      pool("max_pool_odd", {1, 17, 7, 9}, max, {}),
      pool("max_pool_3_stride_2_ceil", {3, 20, 8, 7}, max, {.kernel = 3, .stride = 2, .ceil_mode = true}),
      pool("max_pool_3_pad", {2, 10, 6, 5}, max, {.kernel = 3, .stride = 1, .pad = 1}),
      pool("max_pool_3_stride_2_pad", {2, 32, 9, 8}, max, {.kernel = 3, .stride = 2, .pad = 1}),
      pool("max_pool_3_stride_2", {2, 16, 7, 8}, max, {.kernel = 3, .stride = 2}),
      pool("max_pool_wide", {2, 10, 5, 9}, max, {.kernel = {1, 3}, .stride = {1, 2}, .pad = {0, 1}}),
      pool("max_pool_ceil_drops_window", {2, 3, 5, 5}, max,
           {.kernel = 2, .stride = 3, .pad = 1, .ceil_mode = true}),
      pool("average_pool_2", {5, 16, 8, 8}, average, {}),
      pool("average_pool_pad_counts", {2, 17, 7, 6}, average, {.kernel = 3, .stride = 2, .pad = 1}),
      pool("average_pool_pad_ceil", {1, 10, 8, 7}, average,
           {.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true}),
      pool("average_pool_same", {2, 32, 7, 6}, average, {.kernel = 3, .stride = 1, .pad = 1}),
      pool("average_pool_same_real", {2, 20, 5, 6}, average,
           {.kernel = 3, .stride = 1, .pad = 1, .count_include_pad = false}),
      pool("average_pool_5_stride_3", {3, 16, 17, 16}, average, {.kernel = 5, .stride = 3}),
      pool("average_pool_tall", {2, 17, 9, 5}, average, {.kernel = {4, 1}, .stride = {3, 2}, .pad = {2, 0}}),
      pool("average_pool_real", {2, 3, 6, 8}, average,
           {.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true, .count_include_pad = false}),
      simple<GlobalAveragePool>("global_pool_32", {{5, 32, 4, 4}}),
      simple<GlobalAveragePool>("global_pool_10", {{1, 10, 7, 5}}),
      adaptive("adaptive_pool_same_size", {2, 32, 6, 6}, 6),
      adaptive("adaptive_pool_of_a_pixel", {3, 17, 1, 1}, 7),
      adaptive("adaptive_pool_overlapping", {2, 16, 7, 9}, 6),
      adaptive("adaptive_pool_uneven", {1, 10, 5, 8}, {3, 2}),
      adaptive("adaptive_pool_larger", {2, 20, 2, 3}, {3, 4}),
      adaptive("adaptive_pool_divides", {2, 16, 8, 8}, 2),
      adaptive("adaptive_pool_global", {2, 16, 5, 3}, 1),
      {"linear_64_to_10", std::make_shared<Linear>(LinearOptions{.out = 10}), {{5, 64}}},
      {"linear_odd", std::make_shared<Linear>(LinearOptions{.out = 17, .bias = false}), {{1, 33}}},
      {"linear_wide", std::make_shared<Linear>(LinearOptions{.out = 512}), {{3, 512}}},
      {"linear_tokens", std::make_shared<Linear>(LinearOptions{.out = 20}), {{3, 7, 33}}},
      {"linear_in_first", std::make_shared<Linear>(LinearOptions{.out = 17, .in_first = true}), {{3, 5, 24}}},
      {"linear_in_first_rows",
       std::make_shared<Linear>(LinearOptions{.out = 9, .bias = false, .in_first = true}),
       {{5, 33}}},
      {"linear_of_four", std::make_shared<Linear>(LinearOptions{.out = 33}), {{2, 3, 5, 10}}},
      embedded("embedding", {5, 7}, {.rows = 13, .width = 24}),
      embedded("embedding_of_bags", {2, 3, 4}, {.rows = 5, .width = 9, .padding = 1}),
      embedded("embedding_of_samples", {6}, {.rows = 40, .width = 33}),
      linear_relu("linear_relu_tokens", {2, 9, 16}, {.out = 12, .in_first = true}),
      linear_relu("linear_relu", {5, 64}, {.out = 40}),
      linear_relu("linear_relu_odd", {35, 9}, {.out = 7}),
      linear_relu("linear_relu_without_bias", {3, 33}, {.out = 17, .bias = false}),
      simple<Add>("add_16", {{5, 16, 7, 7}, {5, 16, 7, 7}}),
      simple<Add>("add_10", {{2, 10, 3, 3}, {2, 10, 3, 3}}),
      simple<Add>("add_rows", {{2, 10}, {2, 10}}),
      simple<Concat>("concat_blocks", {{2, 16, 5, 5}, {2, 32, 5, 5}}),
      simple<Concat>("concat_last_uneven", {{5, 16, 3, 4}, {5, 10, 3, 4}}),
      simple<Concat>("concat_uneven", {{2, 10, 5, 5}, {2, 3, 5, 5}, {2, 17, 5, 5}}),
      simple<Concat>("concat_one", {{2, 20, 3, 3}}),
      simple<Flatten>("flatten_pixel", {{5, 32, 1, 1}}),
      simple<Flatten>("flatten_pixel_odd", {{5, 17, 1, 1}}),
      simple<Flatten>("flatten_image", {{2, 16, 3, 5}}),
      {"dropout_half", std::make_shared<Dropout>(0.5, "a"), {{5, 17}}},
      {"dropout_image", std::make_shared<Dropout>(0.3, "b"), {{2, 20, 3, 5}}},
      {"dropout_none", std::make_shared<Dropout>(0.0, "c"), {{2, 16, 2, 2}}},
      loss("loss", 13, 10, 0),
      loss("loss_smoothed", 5, 17, 0.1f),
      loss("loss_of_padding", 1, 3, 0.1f),  // its only label is −1
      loss_of_positions("loss_of_weighted_classes", {13, 3},
                        {.label_smoothing = 0.1f, .class_weights = {0.5f, 2, 0.25f}}),
      loss_of_positions("loss_of_pixels", {3, 4, 5, 7}, {}),
      loss_of_positions("loss_of_pixels_ignored_and_weighted", {2, 3, 6, 5},
                        {.label_smoothing = 0.2f, .class_weights = {1.5f, 2, 0}, .ignore_index = 1}),
      loss_of_positions("loss_of_tokens", {2, 5, 1100}, {.ignore_index = 255}),
      loss_of_positions("loss_of_classes_last", {3, 7, 17}, {.classes_last = true}),
      loss_of_positions("loss_of_a_vocabulary", {2, 3, 5003}, {.ignore_index = 7, .classes_last = true}),
      loss_of_positions("loss_of_classes_last_smoothed", {2, 3, 4, 10},
                        {.label_smoothing = 0.1f, .ignore_index = 255, .classes_last = true}),
      loss_of_positions("loss_of_weighted_classes_last", {13, 3},
                        {.label_smoothing = 0.1f, .class_weights = {0.5f, 2, 0.25f}, .classes_last = true}),
      loss_of_positions("loss_of_many_tokens", {2, 1100, 5}, {.classes_last = true}),
      loss_of_formula("loss_of_squares", {{5, 3, 4}, {5, 3, 4}},
                      {.steps = {"subtract x0 x1", "multiply s0 s0"}}),
      loss_of_formula("loss_of_a_long_row", {{2, 1500}, {2, 1500}}, {.steps = {"subtract x0 x1", "abs s0"}}),
      loss_of_formula("loss_repeated", {{3, 4, 1}, {3, 1, 5}},
                      {.steps = {"multiply x0 x1", "sin s0"}, .reduction = FormulaMean::sum}),
      loss_of_formula("loss_of_itself", {{4, 6}}, {.steps = {"multiply x0 0.5"}}),
      loss_of_formula("loss_with_constants", {{3, 2, 4}, {3, 2, 4}},
                      {.steps = {"multiply x0 p", "softplus s0", "multiply s1 x1"},
                       .constants = {0.5f, -2},
                       .constants_axis = 1}),
      loss_of_shares("loss_of_shares", 23, 10, 0),
      loss_of_shares("loss_of_shares_smoothed", 11, 17, 0.1f),
      loss_of_shares("loss_of_shares_wide", 3, 1000, 0.1f),
      loss_of_shares("loss_of_shares_of_padding", 1, 3, 0.1f),
  };
  for (std::vector<OpCase> more : {
           attention_cases(),
           convolution_cases(),
           interpolate_cases(),
           norm_cases(),
           pointwise_cases(),
           shape_cases(),
       })
    std::ranges::move(more, std::back_inserter(all));
  return all;
}

}  // namespace antichain::harness
