// Activate applies an activation function to every element, on any shape: y = f(x).
//
//   hardsigmoid  min(max(x + 3, 0), 6) / 6           Howard et al., "Searching for MobileNetV3", ICCV 2019
//   hardswish    x · hardsigmoid(x)                  the same
//   relu6        min(max(x, 0), 6)                   Howard et al., "MobileNets: Efficient Convolutional
//                                                    Neural Networks for Mobile Vision Applications", 2017
//   sigmoid      1 / (1 + exp(−x))
//   silu         x · sigmoid(x)                      Elfwing, Uchibe & Doya, "Sigmoid-Weighted Linear Units
//                                                    for Neural Network Function Approximation in
//                                                    Reinforcement Learning", Neural Networks, 2018
//   gelu         x · (1 + erf(x / √2)) / 2           Hendrycks & Gimpel, "Gaussian Error Linear Units
//   gelu_tanh    x · (1 + tanh(u)) / 2,              (GELUs)", arXiv 2016
//                u = √(2 / π) · (x + 0.044715 x³)
//
// The derivatives at kinks are those of PyTorch 2.8: 0 for relu6 at 0 and 6, for hardsigmoid at ±3, and for
// hardswish at −3, while at 3 its derivative is 1. ReLU is an operator of its own (layers/relu.h). The
// formulas as the engines compute them are in layers/activation_formulas.inc.
#pragma once

#include <array>
#include <optional>

#include "framework/graph.h"

namespace antichain {

enum class ActivationFunction { gelu, gelu_tanh, hardsigmoid, hardswish, relu6, sigmoid, silu };

constexpr std::array<std::string_view, 7> activation_names = {
    "gelu", "gelu_tanh", "hardsigmoid", "hardswish", "relu6", "sigmoid", "silu"};
constexpr std::span<const std::string_view> names(ActivationFunction) { return activation_names; }
// Returns "silu".
constexpr std::string_view name_of(ActivationFunction f) { return activation_names[size_t(f)]; }
// Returns the FLOPs of the formula above for one number; exp, erf, tanh, a minimum and a maximum count as
// one.
double flops_of(ActivationFunction);
// Returns whether the derivative follows from y, so that backward re-reads y; otherwise it re-reads x.
bool derives_from_y(ActivationFunction);
// Returns whether f(0) = 0, so that the padding of a layout stays zero.
bool keeps_zero(ActivationFunction);

struct ActivateOptions {
  std::optional<ActivationFunction> function = std::nullopt;  // it has no default
};
template <class Visit>
void fields(ActivateOptions& o, Visit&& visit) {
  visit("function", o.function);
}

class Activate : public Op {
 public:
  explicit Activate(ActivationFunction of) : function(of) {}
  std::string_view type() const override { return "activate"; }
  std::string str() const override { return std::string(name_of(function)); }
  Signature infer(std::span<const Shape> x) const override;

  const ActivationFunction function;
};

enum class Gelu { erf, tanh };  // the exact form, the approximation

NodeId gelu(Graph&, std::string name, NodeId x, Gelu form = Gelu::erf);
NodeId hardsigmoid(Graph&, std::string name, NodeId x);
NodeId hardswish(Graph&, std::string name, NodeId x);
NodeId relu6(Graph&, std::string name, NodeId x);
NodeId sigmoid(Graph&, std::string name, NodeId x);
NodeId silu(Graph&, std::string name, NodeId x);

}  // namespace antichain
