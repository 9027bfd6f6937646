#include "tests/layers/pointwise_cases.h"

#include "layers/activate.h"
#include "layers/elementwise.h"
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

// Each step rounds its float32 result, and a gradient passes through all of them.
OpCase formula(std::string name, std::vector<Shape> x, std::vector<std::string> steps,
               std::optional<Shape> parameter = std::nullopt, double spread = 2, int axis = -1) {
  return {.name = "elementwise_" + std::move(name),
          .op = std::make_shared<Elementwise>(
              ElementwiseOptions{std::move(steps), parameter, axis, Initialiser::normal(1)}),
          .x = std::move(x),
          .input_roundings = 3,
          .spread = spread};
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
          formula("add_number", {{5, 17}}, {"add x0 1.5"}),
          formula("axes_of_one", {{3, 4, 1, 6}, {3, 1, 5, 1}}, {"multiply x0 x1", "sin s0", "add s0 s1"}),
          formula("blocked", {{2, 20, 5, 3}}, {"cos x0", "exp s0"}),
          formula("chain", {{5, 17}, {5, 17}},
                  {"multiply x0 0.5", "tanh s0", "subtract x1 s1", "multiply s2 x0", "sigmoid s3",
                   "divide s4 3"}),
          formula("clamp", {{3, 300}}, {"clamp x0 -0.5003 1.2507"}),
          formula("constant_divided", {{3, 7}}, {"multiply x0 x0", "add s0 1", "divide 1 s1"}),
          formula("differences", {{3, 20, 2, 3}, {3, 20, 2, 3}},
                  {"subtract x0 x1", "negate s0", "multiply s1 2"}),
          formula("elu", {{3, 40}}, {"elu x0 1.5"}, {}, 5),
          formula("expm1", {{3, 40}}, {"expm1 x0"}),
          formula("gate_of_pixels", {{2, 17, 5, 3}, {2, 1, 5, 3}}, {"sigmoid x1", "multiply x0 s0"}),
          formula("leaky_relu", {{3, 10, 3, 5}}, {"leaky_relu x0 0.01"}),
          formula("logarithms", {{3, 70}}, {"abs x0", "add s0 0.1", "log s1", "log1p s0", "add s2 s3"}),
          formula("maximum", {{3, 70}, {3, 70}}, {"maximum x0 x1", "minimum s0 0.7507"}),
          formula("mish", {{5, 16, 7, 7}}, {"mish x0"}, {}, 6),
          formula("position", {{3, 6, 5}}, {"add x0 p"}, Shape{1, 6, 5}),
          formula("power", {{3, 50}, {3, 50}}, {"abs x0", "add s0 0.2", "power s1 x1"}),
          formula("power_of_number", {{3, 50}}, {"power x0 3"}),
          formula("prelu", {{4, 5, 9, 9}}, {"leaky_relu x0 p"}, Shape{5}, 2, 1),
          formula("relu_square", {{3, 17}}, {"relu x0", "multiply s0 s0"}),
          formula("rezero", {{4, 5, 3, 3}, {4, 5, 3, 3}}, {"multiply x1 p", "add x0 s0"},
                  Shape(std::initializer_list<int64_t>{})),
          formula("rows_of_one", {{3, 1}, {3, 900}}, {"subtract x1 x0"}),
          formula("select", {{3, 70}, {3, 70}}, {"greater x0 0.2507", "where s0 x0 x1"}),
          formula("spread", {{4, 300, 7}}, {"multiply x0 p", "sin s0"}, Shape{300, 1}),
          formula("square_root", {{3, 50}}, {"multiply x0 x0", "add s0 0.01", "sqrt s1"}),
          formula("token", {{3, 1, 5}}, {"multiply x0 p"}, Shape{4, 1}),
          scaled("layer_scale", {5, 32, 7, 7}),
          scaled("layer_scale_odd", {3, 17, 5, 3}),
          scaled("layer_scale_parts", {3, 24, 29, 31}),
          soft("softmax_image", {2, 16, 5, 3}),
          soft("softmax_image_odd", {3, 17, 4, 3}),
          soft("softmax_one_class", {3, 1}),
          soft("softmax_rows", {5, 10}),
          soft("softmax_rows_of_many", {3, 1000}),
          depth("stochastic_depth_batch", 0.2, Drop::batch, {7, 20, 3, 5}),
          depth("stochastic_depth_channel", 0.4, Drop::channel, {5, 17, 3, 5}),
          depth("stochastic_depth_channel_of_rows", 0.4, Drop::channel, {5, 17}),
          depth("stochastic_depth_none", 0, Drop::row, {2, 16, 2, 2}),
          depth("stochastic_depth_row", 0.4, Drop::row, {13, 16, 3, 5}),
          depth("stochastic_depth_rows", 0.4, Drop::row, {13, 17})};
}

}  // namespace antichain::harness
