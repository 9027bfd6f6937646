#include "tests/layers/pointwise_cases.h"

#include "layers/activate.h"
#include "layers/layer_scale.h"
#include "layers/multiply.h"
#include "layers/softmax.h"
#include "layers/stochastic_depth.h"

namespace antichain::harness {
namespace {

// Inputs reach beyond the kinks at ±3 and 6. The bounds of bf16 are for what is stored once; a derivative
// from a y that is rounded has errors of y and of 1 − y besides.
OpCase activation(std::string name, ActivationFunction function, Shape x) {
  return {.name = std::move(name),
          .op = std::make_shared<Activate>(function),
          .x = {x},
          .input_roundings = derives_from_y(function) ? 4.0 : 1.0,
          .spread = 7.3};
}

OpCase product(std::string name, Shape a, Shape b) {
  return {std::move(name), std::make_shared<Multiply>(), {a, b}};
}

OpCase scaled(std::string name, Shape x) {
  return {std::move(name), std::make_shared<LayerScale>(LayerScaleOptions{}), {x}};
}

// A gradient of softmax has the roundings of y, and of Σ dy · y.
OpCase soft(std::string name, Shape x) {
  return {.name = std::move(name),
          .op = std::make_shared<Softmax>(),
          .x = {x},
          .input_roundings = 3,
          .spread = 5};
}

OpCase depth(std::string name, double p, Drop drop, Shape x) {
  return {name, std::make_shared<StochasticDepth>(p, drop, name), {x}};
}

}  // namespace

std::vector<OpCase> pointwise_cases() {
  using enum ActivationFunction;
  return {activation("gelu", gelu, {5, 16, 7, 7}),
          activation("gelu_odd", gelu, {1, 10, 3, 5}),
          activation("gelu_rows", gelu, {5, 17}),
          activation("gelu_tanh", gelu_tanh, {3, 20, 7, 5}),
          activation("gelu_tanh_rows", gelu_tanh, {5, 17}),
          activation("hardsigmoid", hardsigmoid, {5, 16, 7, 7}),
          activation("hardsigmoid_odd", hardsigmoid, {3, 10, 3, 5}),
          activation("hardsigmoid_gates", hardsigmoid, {5, 20, 1, 1}),
          activation("hardswish", hardswish, {5, 16, 7, 7}),
          activation("hardswish_odd", hardswish, {1, 10, 3, 5}),
          activation("hardswish_rows", hardswish, {5, 17}),
          activation("relu6", relu6, {5, 16, 7, 7}),
          activation("relu6_odd", relu6, {1, 10, 3, 5}),
          activation("sigmoid", sigmoid, {5, 16, 7, 7}),
          activation("sigmoid_odd", sigmoid, {3, 10, 3, 5}),
          activation("sigmoid_gates", sigmoid, {5, 20, 1, 1}),
          activation("sigmoid_rows", sigmoid, {5, 17}),
          activation("silu", silu, {5, 16, 7, 7}),
          activation("silu_odd", silu, {1, 10, 3, 5}),
          activation("silu_rows", silu, {5, 17}),
          product("multiply_images", {3, 20, 5, 4}, {3, 20, 5, 4}),
          product("multiply_rows", {5, 17}, {5, 17}),
          product("multiply_pixel", {5, 16, 1, 1}, {5, 16, 1, 1}),
          product("multiply_gates", {5, 16, 7, 7}, {5, 16, 1, 1}),
          product("multiply_gates_large", {2, 40, 29, 31}, {2, 40, 1, 1}),
          product("multiply_gates_odd", {3, 17, 5, 3}, {3, 17, 1, 1}),
          product("multiply_gates_two_blocks", {2, 24, 9, 9}, {2, 24, 1, 1}),
          scaled("layer_scale", {5, 32, 7, 7}),
          scaled("layer_scale_odd", {3, 17, 5, 3}),
          scaled("layer_scale_parts", {3, 24, 29, 31}),
          soft("softmax_image", {2, 16, 5, 3}),
          soft("softmax_image_odd", {3, 17, 4, 3}),
          soft("softmax_one_class", {3, 1}),
          soft("softmax_rows", {5, 10}),
          soft("softmax_rows_of_many", {3, 1000}),
          depth("stochastic_depth_batch", 0.2, Drop::batch, {7, 20, 3, 5}),
          depth("stochastic_depth_none", 0, Drop::row, {2, 16, 2, 2}),
          depth("stochastic_depth_row", 0.4, Drop::row, {13, 16, 3, 5}),
          depth("stochastic_depth_rows", 0.4, Drop::row, {13, 17})};
}

}  // namespace antichain::harness
