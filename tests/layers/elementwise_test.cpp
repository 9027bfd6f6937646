// Tests the formulas of Elementwise beyond the table of cases: how exact their functions are, what a chain
// becomes, and what is refused.
#include "layers/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "framework/fuse.h"
#include "layers/cpu/elementwise_steps.h"
#include "layers/input.h"
#include "tests/cpu_engine.h"
#include "tests/expect_error.h"
#include "tests/layers/op_harness.h"

namespace antichain::harness {
namespace {

ElementwiseOptions steps(std::vector<std::string> all, std::optional<Shape> parameter = std::nullopt) {
  return {.steps = std::move(all), .parameter = parameter};
}

Numbers computed(const std::string& step, std::vector<Numbers> x) {
  std::vector<Shape> shapes(x.size(), Shape{int64_t(x[0].size()), 1});
  const OpCase c{"step", std::make_shared<Elementwise>(steps({step})), shapes};
  return run(cpu_engine(), c, {.x = x, .dy = Numbers(x[0].size(), 1)}).y;
}

// Returns float32 numbers of both signs from 2^-30 to `most`, and 0.
Numbers numbers(double least, double most) {
  Numbers all = {0};
  for (double size = 0x1p-30; size <= std::max(most, -least); size *= 1.0137)
    for (const double x : {double(float(-size)), double(float(size))})
      if (x >= least && x <= most) all.push_back(x);
  return all;
}

// An ulp is the distance of neighbouring float32 numbers.
void expect_within(double ulps, const std::string& function, double least, double most,
                   const std::function<double(double)>& exact) {
  const Numbers x = numbers(least, most), y = computed(function + " x0", {x});
  for (size_t i = 0; i < x.size(); ++i) {
    const double right = exact(x[i]), ulp = std::max(std::ldexp(1.0, std::ilogb(right) - 23), 0x1p-149);
    if (float(right) == float(y[i])) continue;  // infinities among them
    EXPECT_LT(std::abs(y[i] - right), ulps * ulp) << function << " of " << x[i];
  }
}

// layers/elementwise_math.inc states the errors, found at every 51st float32 number.
TEST(ElementwiseFunctions, AreAsExactAsTheyState) {
  expect_within(1, "exp", -120, 95, [](double x) { return std::exp(x); });
  expect_within(1.5, "expm1", -120, 95, [](double x) { return std::expm1(x); });
  expect_within(0.9, "log", 0, 3e38, [](double x) { return std::log(x); });
  expect_within(1.5, "log1p", -0.999, 3e38, [](double x) { return std::log1p(x); });
  expect_within(1.6, "sin", -0x1p30, 0x1p30, [](double x) { return std::sin(x); });
  expect_within(1.6, "cos", -0x1p30, 0x1p30, [](double x) { return std::cos(x); });
  expect_within(1.5, "tanh", -200, 200, [](double x) { return std::tanh(x); });
  expect_within(2.8, "sigmoid", -87, 100, [](double x) { return 1 / (1 + std::exp(-x)); });
  expect_within(1.7, "softplus", -120, 1e5, [](double x) { return x > 40 ? x : std::log1p(std::exp(x)); });
  expect_within(4.6, "mish", -87, 1e5, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  expect_within(0.51, "sqrt", 0, 3e38, [](double x) { return std::sqrt(x); });
}

uint32_t bits(float x) { return std::isnan(x) ? 0x7FC00000u : std::bit_cast<uint32_t>(x); }

// So neither the processor nor a number's place in a tensor changes a bit.
TEST(ElementwiseFunctions, GiveTheSameBitsInEveryVectorAndAlone) {
  using enum ElementwiseFunction;
  const auto& sets = cpu::every<cpu::ElementwiseSteps>();
  std::vector<const cpu::ElementwiseSteps*> all = {sets.baseline};
  if (cpu::has_avx2()) all.push_back(sets.avx2);
  if (cpu::has_avx512()) all.push_back(sets.avx512);
  std::vector<float> x;
  for (const double number : numbers(-3e38, 3e38)) x.push_back(float(number));
  for (const float special : {NAN, INFINITY, -INFINITY, 1e-40f, -1e-45f, -0.0f}) x.push_back(special);
  const size_t count = x.size();
  const std::vector<float> other(x.rbegin(), x.rend()), dy(count, 1), before(count, 0.25f);
  for (const ElementwiseFunction f :
       {cos, elu, exp, expm1, log, log1p, mish, power, sigmoid, sin, softplus, sqrt, tanh})
    for (const cpu::ElementwiseSteps* steps : all) {
      // All at once, and each alone.
      std::vector<float> y[2], dx[2];
      for (const size_t at_once : {count, size_t(1)}) {
        std::vector<float>&values = y[at_once == 1], &slopes = dx[at_once == 1];
        values.resize(count), slopes.resize(count);
        for (size_t i = 0; i < count; i += at_once) {
          const float* operands[] = {&x[i], &other[i], &other[i]};
          const auto& loops = at_once == 1 ? *sets.baseline : *steps;
          loops.value(f, operands, &values[i], int64_t(at_once));
          loops.gradient(f, 0, operands, &values[i], &dy[i], &before[i], &slopes[i], int64_t(at_once));
        }
      }
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(bits(y[0][i]), bits(y[1][i])) << int(f) << " of " << x[i];
        EXPECT_EQ(bits(dx[0][i]), bits(dx[1][i])) << int(f) << " of " << x[i];
      }
    }
}

TEST(ElementwiseFunctions, PowersAreThoseOfTheStandardLibrary) {
  const float x[] = {2, 3, -2, -2, -3, 0, 0, 5, 1.5f, 1e-3f, 10},
              e[] = {10, -2, 3, 2, -1, 2, 0, 0, 0.5f, 3.25f, -30};
  const float* both[] = {x, e, e};
  float y[std::size(x)];
  cpu::best_loops<cpu::ElementwiseSteps>().value(ElementwiseFunction::power, both, y, std::ssize(x));
  for (size_t i = 0; i < std::size(x); ++i)
    EXPECT_EQ(y[i], float(std::pow(double(x[i]), double(e[i])))) << x[i] << " to " << e[i];
}

TEST(ElementwiseFunctions, KeepWhatIsNoNumber) {
  using enum ElementwiseFunction;
  const float nan = NAN, one = 1, *x[] = {&nan, &one, &one};
  for (const ElementwiseFunction f : {abs, clamp, cos, elu, exp, expm1, log, log1p, maximum, minimum, mish,
                                      relu, sigmoid, sin, softplus, tanh}) {
    float y = 0;
    cpu::best_loops<cpu::ElementwiseSteps>().value(f, x, &y, 1);
    EXPECT_TRUE(std::isnan(y)) << int(f);
  }
  const float negative = -2, half = 0.5, *root[] = {&negative, &half, &half};
  float y = 0;
  cpu::best_loops<cpu::ElementwiseSteps>().value(power, root, &y, 1);
  EXPECT_TRUE(std::isnan(y));
}

// The derivatives at kinks are PyTorch's.
TEST(ElementwiseFunctions, HaveTheDerivativesOfPyTorchAtKinks) {
  const auto slopes = [](const std::string& step, std::vector<Numbers> x) {
    std::vector<Shape> shapes(x.size(), Shape{1, 1});
    const OpCase c{"kink", std::make_shared<Elementwise>(steps({step})), shapes};
    Numbers all;
    for (const Numbers& dx : run(cpu_engine(), c, {.x = x, .dy = {1}}).dx) all.push_back(dx[0]);
    return all;
  };
  EXPECT_EQ(slopes("abs x0", {{0}}), (Numbers{0}));
  EXPECT_EQ(slopes("clamp x0 -1 1", {{1}}), (Numbers{1}));
  EXPECT_EQ(slopes("maximum x0 x1", {{2}, {2}}), (Numbers{0.5, 0.5}));
  EXPECT_EQ(slopes("power x0 x1", {{0}, {2}}), (Numbers{0, 0}));
  EXPECT_EQ(slopes("relu x0", {{0}}), (Numbers{0}));
  EXPECT_EQ(slopes("leaky_relu x0 0.5", {{0}}), (Numbers{0.5}));
}

TEST(ElementwiseChain, BecomesOneNodeWhereverItsInputIs) {
  Graph graph("chain");
  const NodeId x = input_images(graph, "images", {2, 3, 4, 4});
  const NodeId half = elementwise(graph, "half", {x}, steps({"multiply x0 0.5"}));
  const NodeId gate = elementwise(graph, "gate", {x}, steps({"multiply x0 p"}, Shape{3, 1, 1}));
  const NodeId rest = elementwise(graph, "rest", {gate, half}, steps({"subtract x0 x1"}));
  elementwise(graph, "divided", {x, rest}, steps({"divide x0 x1", "tanh s0"}));
  const Graph fused = fuse(graph, cpu_engine());
  ASSERT_EQ(fused.size(), 2);
  EXPECT_EQ(fused[1].name, "gate");
  EXPECT_EQ(fused[1].absorbed, (std::vector<std::string>{"half", "rest", "divided"}));
  EXPECT_EQ(fused[1].inputs, (std::vector<NodeId>{0, 0, 0}));
  EXPECT_EQ(fused[1].op->str(),
            "elementwise(multiply x0 p; multiply x1 0.5; subtract s0 s1; divide x2 s2; tanh s3; p 3 x 1 x 1 "
            "constant 0)");
}

// The gate has one number an image: to compute it again for each pixel would cost more than to store it.
TEST(ElementwiseChain, EndsWhereAResultIsRepeated) {
  Graph graph("chain");
  const NodeId x = input_images(graph, "images", {2, 3, 4, 4}),
               one = input_images(graph, "one", {2, 3, 1, 1});
  const NodeId gate = elementwise(graph, "gate", {one}, steps({"sigmoid x0"}));
  elementwise(graph, "gated", {x, gate}, steps({"multiply x0 x1"}));
  EXPECT_EQ(fuse(graph, cpu_engine()).size(), 4);
}

TEST(ElementwiseErrors, NameTheStepAndTheShapes) {
  expect_error([] { Elementwise(steps({"add x0 x1", "erfinv s0"})); }, {"no function 'erfinv'", "tanh"});
  expect_error([] { Elementwise(steps({"add x0"})); }, {"\"add x0\"", "add wants 2 operands"});
  expect_error([] { Elementwise(steps({"exp x0 x1"})); }, {"exp has 1 operands"});
  expect_error([] { Elementwise(steps({"exp s0"})); }, {"'s0' is not one of the 0 steps before it"});
  expect_error([] { Elementwise(steps({"exp x8"})); }, {"'x8' is not one of the 8 inputs"});
  expect_error([] { Elementwise(steps({"add x0 1e"})); }, {"'1e' is no operand"});
  expect_error([] { Elementwise(steps({"add x0 p"})); }, {"p, which the node does not have"});
  expect_error([] { Elementwise(steps({"exp x0"}, Shape{3})); }, {"a parameter that no step uses"});
  expect_error([] { Elementwise(steps({})); }, {"at least one step"});
  const Elementwise sum(steps({"add x0 x1"})), scaled(steps({"multiply x0 p"}, Shape{4}));
  const Shape other_rank[] = {{2, 3}, {2, 3, 1}}, samples[] = {{2, 3}, {1, 3}}, extents[] = {{2, 3}, {2, 4}};
  expect_error([&] { sum.infer(other_rank); }, {"one rank", "2 x 3 and 2 x 3 x 1"});
  expect_error([&] { sum.infer(samples); }, {"equally many samples", "2 x 3 and 1 x 3"});
  expect_error([&] { sum.infer(extents); }, {"x1 of 2 x 4 can't be repeated to 2 x 3"});
  expect_error([&] { scaled.infer({extents, 1}); }, {"the parameter of 4", "2 x 3"});
}

}  // namespace
}  // namespace antichain::harness
