// Tests what the pointwise operators promise beyond their formulas: accuracy, derivatives at kinks, the same
// bits with every instruction set, keys of random numbers, clear errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/random.h"
#include "layers/activate.h"
#include "layers/check_inputs.h"
#include "layers/cpu/activate_loops.h"
#include "layers/cpu/channel_scale_loops.h"
#include "layers/cpu/softmax_loops.h"
#include "layers/input.h"
#include "layers/layer_scale.h"
#include "layers/multiply.h"
#include "layers/softmax.h"
#include "layers/stochastic_depth.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"
#include "tests/layers/reference/reference.h"

namespace antichain::harness {
namespace {

constexpr ActivationFunction every_function[] = {
    ActivationFunction::gelu,      ActivationFunction::gelu_tanh, ActivationFunction::hardsigmoid,
    ActivationFunction::hardswish, ActivationFunction::relu6,     ActivationFunction::sigmoid,
    ActivationFunction::silu};

OpCase activation(ActivationFunction f, int64_t numbers) {
  return {std::string(name_of(f)), std::make_shared<Activate>(f), {{1, numbers}}};
}

// Returns the results at these inputs, with dy = 1.
Results at(const Backend& backend, ActivationFunction f, const Numbers& x) {
  return run(backend, activation(f, int64_t(x.size())), {.x = {x}, .dy = Numbers(x.size(), 1)});
}

TEST(Activate, IsAccurateFromTailToTail) {
  Numbers x;
  for (int i = -40'000; i <= 40'000; ++i) x.push_back(float(i * 0.0005));
  for (const ActivationFunction f : every_function) {
    SCOPED_TRACE(name_of(f));
    const Results exact = at(reference::backend(), f, x), ours = at(cpu_engine(), f, x);
    constexpr double ulp = 0x1p-24;  // of float32, half the distance to the next number
    double worst = 0, worst_slope = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(ours.y[i] - exact.y[i]) / std::max(std::abs(exact.y[i]), 1e-3));
      worst_slope =
          std::max(worst_slope, std::abs(ours.dx[0][i] - exact.dx[0][i]) / std::max(1.0, std::abs(x[i])));
    }
    // An exponential is off by 3 of these units, and there are some roundings after it. The arguments of
    // gelu's exponentials are rounded, too. They are up to 9 where y is 1e-3, and count so many times: once
    // for the exact form, three times for that of tanh.
    const double units = f == ActivationFunction::gelu ? 16 : f == ActivationFunction::gelu_tanh ? 32 : 5;
    EXPECT_LE(worst, units * ulp);
    // Derivatives are sums of terms of size 1 and x.
    EXPECT_LE(worst_slope, 5 * ulp);
  }
}

// These are PyTorch's values and derivatives where the functions have no derivative, and beside these points.
TEST(Activate, HasPyTorchsDerivativesAtKinks) {
  using enum ActivationFunction;
  const auto expect = [](ActivationFunction f, const Numbers& x, const Numbers& y, const Numbers& slopes) {
    const Results ours = at(cpu_engine(), f, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_FLOAT_EQ(float(ours.y[i]), float(y[i])) << name_of(f) << " at " << x[i];
      EXPECT_FLOAT_EQ(float(ours.dx[0][i]), float(slopes[i])) << name_of(f) << " at " << x[i];
    }
  };
  expect(relu6, {-1, 0, 0.5, 6, 7}, {0, 0, 0.5, 6, 6}, {0, 0, 1, 0, 0});
  expect(hardsigmoid, {-4, -3, 0, 3, 4}, {0, 0, 0.5, 1, 1}, {0, 0, 1 / 6., 0, 0});
  expect(hardswish, {-4, -3, -1.5, 0, 3, 4}, {0, 0, -0.375, 0, 3, 4}, {0, 0, 0, 0.5, 1, 1});
}

TEST(Activate, LetsNanThroughAndEndsAtItsLimits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const ActivationFunction f : every_function) {
    const float x[] = {std::nanf(""), infinity, 1e30f, -1e30f};
    float y[4];
    cpu::best_loops<cpu::ActivateLoops<float>>().forward(f, x, y, 4);
    const bool bounded = f == ActivationFunction::sigmoid || f == ActivationFunction::hardsigmoid;
    EXPECT_TRUE(std::isnan(y[0])) << name_of(f);
    EXPECT_EQ(y[1], bounded ? 1 : f == ActivationFunction::relu6 ? 6 : infinity) << name_of(f);
    EXPECT_EQ(y[2], bounded ? 1 : f == ActivationFunction::relu6 ? 6 : 1e30f) << name_of(f);
    EXPECT_EQ(y[3], 0) << name_of(f);
  }
}

template <class T>
std::vector<T> numbers(int64_t count, uint64_t key, float spread) {
  std::vector<T> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(T((Philox::uniform(Philox(key).words(uint64_t(i))[0]) - 0.5f) * 2 * spread));
  return all;
}

template <class T>
std::vector<double> everything(const cpu::ActivateLoops<T>& loops) {
  std::vector<double> all;
  for (const int64_t n : {1, 15, 16, 1025}) {
    const auto x = numbers<T>(n, 1, 30), dy = numbers<T>(n, 2, 1);
    std::vector<T> y(x.size()), dx(x.size());
    for (const ActivationFunction f : every_function) {
      loops.forward(f, x.data(), y.data(), n);
      all.insert(all.end(), y.begin(), y.end());
      for (const bool adds : {false, true}) {
        loops.backward(f, derives_from_y(f) ? y.data() : x.data(), dy.data(), dx.data(), adds, n);
        all.insert(all.end(), dx.begin(), dx.end());
      }
    }
  }
  return all;
}

template <class T>
std::vector<double> everything(const cpu::ChannelScaleLoops<T>& loops) {
  std::vector<double> all;
  for (const int block : {1, 8, 16})
    for (const int64_t pixels : {1, 5, 64, 257}) {
      const int64_t size = pixels * block;
      const auto x = numbers<T>(size, 1, 1), dy = numbers<T>(size, 2, 1);
      const auto of_channels = numbers<float>(block, 3, 1);
      const cpu::Factors<float> factors(of_channels.data(), block, block);
      std::vector<T> y(x.size()), dx(x.size());
      loops.forward(x.data(), factors.lanes, y.data(), size);
      all.insert(all.end(), y.begin(), y.end());
      for (const bool adds : {false, true})
        for (const bool sums : {false, true}) {
          double sum[16] = {};
          loops.backward({x.data(), dy.data(), dx.data(), adds, sums ? sum : nullptr}, factors.lanes, size,
                         block);
          all.insert(all.end(), dx.begin(), dx.end());
          all.insert(all.end(), sum, sum + 16);
        }
    }
  return all;
}

std::vector<double> everything(const cpu::SoftmaxLoops& loops) {
  std::vector<double> all;
  for (const int64_t n : {1, 15, 16, 1025}) {
    auto row = numbers<float>(n, 1, 30), gradient = numbers<float>(n, 2, 1);
    loops.forward(row.data(), n);
    loops.backward(row.data(), gradient.data(), n);
    all.insert(all.end(), row.begin(), row.end());
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

template <class Loops>
void expect_same_bits(const cpu::PerInstructionSet<const Loops*>& of) {
  const std::vector<double> expected = everything(*of.baseline);
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(everything(*of.avx2), expected);
  }
  if (cpu::has_avx512()) {
    EXPECT_EQ(everything(*of.avx512), expected);
  }
}

TEST(Activate, EveryInstructionSetGivesTheSameBits) {
  expect_same_bits(cpu::every<cpu::ActivateLoops<float>>());
  expect_same_bits(cpu::every<cpu::ActivateLoops<Bf16>>());
}

TEST(ChannelScale, EveryInstructionSetGivesTheSameBits) {
  expect_same_bits(cpu::every<cpu::ChannelScaleLoops<float>>());
  expect_same_bits(cpu::every<cpu::ChannelScaleLoops<Bf16>>());
}

// One float chain of 12,544 terms would be off by some 100 units.
TEST(Multiply, TheGradientOfAGateIsNearlyCorrectlyRounded) {
  const OpCase c{"gate", std::make_shared<Multiply>(), {{2, 16, 112, 112}, {2, 16, 1, 1}}};
  const Values values = draw(c);
  const Results exact = run(reference::backend(), c, values);
  for (const Layout layout : {Layout::plain, Layout::nChw16c}) {
    const Results ours = run(cpu_engine(), c, values, {.offered = layout});
    for (size_t i = 0; i < 32; ++i)
      // Every product of up to 1 is rounded once, at random, which makes √12544 roundings, and so is the sum.
      EXPECT_NEAR(ours.dx[1][i], exact.dx[1][i], 0x1p-24 * (112 + std::abs(exact.dx[1][i])));
  }
}

TEST(Softmax, EveryInstructionSetGivesTheSameBits) { expect_same_bits(cpu::every<cpu::SoftmaxLoops>()); }

TEST(Softmax, LargeNumbersDoNotOverflow) {
  const OpCase c{"large", std::make_shared<Softmax>(), {{1, 3}}};
  const Results ours = run(cpu_engine(), c, {.x = {{3e38, 3e38, -3e38}}, .dy = {1, 0, 0}});
  EXPECT_EQ(ours.y, (Numbers{0.5, 0.5, 0}));
  EXPECT_EQ(ours.dx[0], (Numbers{0.25, -0.25, 0}));
}

// The parameter has torchvision's name and shape, so that its state_dict fits.
TEST(LayerScale, HasTheNodesNameForItsParameter) {
  Graph graph;
  const NodeId x = input_images(graph, "images", {2, 16, 4, 4});
  const Node& node = graph[layer_scale(graph, "features.1.0.layer_scale", x)];
  ASSERT_EQ(node.signature.params.size(), 1u);
  const ParamSpec& factors = node.signature.params[0];
  EXPECT_EQ(full_name(node, factors), "features.1.0.layer_scale");
  EXPECT_EQ(factors.shape, (Shape{16, 1, 1}));
  EXPECT_EQ(str(factors.init), "constant 1e-06");
}

std::vector<bool> kept(Drop drop, uint64_t step, uint64_t first_sample, int64_t samples,
                       const std::string& node = "depth") {
  const KeptParts drawn(StochasticDepth(0.3, drop, node), {samples, 3, 2, 2},
                        {.seed = 1, .step = step, .first_sample = first_sample});
  std::vector<bool> all;
  for (int64_t n = 0; n < samples; ++n) all.push_back(drawn.kept(n));
  return all;
}

TEST(StochasticDepth, DependsOnThePositionInTheBatchNotOnTheMicroBatch) {
  const std::vector<bool> whole = kept(Drop::row, 4, 0, 64), second_half = kept(Drop::row, 4, 32, 32);
  EXPECT_TRUE(std::equal(second_half.begin(), second_half.end(), whole.begin() + 32));
  EXPECT_NE(whole, kept(Drop::row, 5, 0, 64));
  EXPECT_NE(whole, kept(Drop::row, 4, 0, 64, "other"));
}

TEST(StochasticDepth, DropsTheRightShareOfSamples) {
  const auto all = kept(Drop::row, 0, 0, 10'000);
  // The standard deviation of 10,000 draws is 46, and the tolerance is five of them.
  EXPECT_NEAR(double(std::count(all.begin(), all.end(), true)), 7000, 230);
}

TEST(StochasticDepth, OfABatchKeepsAllMicroBatchesOrNone) {
  int steps_kept = 0;
  for (uint64_t step = 0; step < 2000; ++step) {
    const bool first = kept(Drop::batch, step, 0, 1)[0];
    for (const uint64_t first_sample : {0, 8, 24})
      EXPECT_EQ(kept(Drop::batch, step, first_sample, 4), std::vector<bool>(4, first));
    steps_kept += first;
  }
  EXPECT_NEAR(steps_kept, 1400, 103);  // five standard deviations
}

TEST(PointwiseErrors, NameWhatDoesNotFit) {
  const Shape cube[] = {{2, 16, 4}};
  const Shape gates_of_another[] = {{2, 16, 4, 4}, {2, 8, 1, 1}}, rows[] = {{2, 16}, {2, 1}};
  expect_error([&] { Multiply().infer(gates_of_another); },
               {"multiply cannot multiply 2 x 16 x 4 x 4 by 2 x 8 x 1 x 1", "2 x 16 x 1 x 1"});
  expect_error([&] { Multiply().infer(rows); }, {"2 x 16 by 2 x 1", "same shape"});
  expect_error([&] { Softmax().infer(cube); }, {"2 or 4 dimensions", "2 x 16 x 4"});
  expect_error([&] { LayerScale({}).infer(cube); }, {"layer_scale", "4 dimensions"});
  expect_error([] { StochasticDepth(1.0, Drop::row, "d"); }, {"stochastic depth 'd'", "p < 1"});
}

TEST(PointwiseStr, TellsOptionsApart) {
  EXPECT_EQ(Activate(ActivationFunction::gelu_tanh).str(), "gelu_tanh");
  EXPECT_EQ(LayerScale({}).str(), "layer_scale(1e-06)");
  EXPECT_EQ(StochasticDepth(0.2, Drop::row, "a").str(), "stochastic_depth(0.2, row, a)");
  EXPECT_EQ(StochasticDepth(0.2, Drop::batch, "a").str(), "stochastic_depth(0.2, batch, a)");
}

}  // namespace
}  // namespace antichain::harness
