// Draws initial values of parameters and buffers from a generator keyed by (seed, full parameter name): a
// parameter gets the same bits on every stage and rank.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "framework/tensor.h"

namespace antichain {

struct Initialiser {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  float a = 0;  // constant: the value; normal: the standard deviation; uniform: the half-width (−a … a)

  static Initialiser constant(float value) { return {Kind::constant, value}; }
  static Initialiser normal(double stddev) { return {Kind::normal, float(stddev)}; }
  static Initialiser uniform(double half_width) { return {Kind::uniform, float(half_width)}; }
  // Draws from N(0, 2 / fan_out), with the gain of ReLU: He et al., "Delving Deep into Rectifiers", ICCV
  // 2015.
  static Initialiser kaiming_normal_fan_out(int64_t fan_out);
  // Draws from U(±1 / sqrt(fan_in)), the default of PyTorch's Conv2d and Linear for weights and biases alike.
  static Initialiser kaiming_uniform_fan_in(int64_t fan_in);
};

constexpr std::array<std::string_view, 3> initialiser_names = {"constant", "normal", "uniform"};
constexpr std::span<const std::string_view> names(Initialiser::Kind) { return initialiser_names; }

// Fills `values` (host, float32, plain layout).
void initialise(const Tensor& values, const Initialiser&, uint64_t seed, std::string_view full_name);

}  // namespace antichain
