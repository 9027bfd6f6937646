// Runs the ten networks, forward and backward, on a second engine beside the CPU's: the CUDA engine, or its
// kernels as loops on the host. Layouts, reorders and fusion are that engine's own.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "tests/models/golden.h"
#include "tests/models/graph_run.h"
#include "tests/models/judged_engine.h"

namespace antichain {
namespace {

double norm(const std::vector<double>& a, const std::vector<double>* b = nullptr) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - (b ? (*b)[i] : 0)) * (a[i] - (b ? (*b)[i] : 0));
  return sum;
}

const Backend& cpu() {
  register_cpu_backend();
  return backend("cpu");
}

class Agreement : public ::testing::TestWithParam<GoldenErrors> {
 protected:
  void SetUp() override {
    std::string why;
    engine_ = compared_engine(why);
    if (!engine_) GTEST_SKIP() << why;
  }

  const Backend* engine_ = nullptr;
};

// Returns the distances of a run from another: of the logits relative to their norm, of gradients relative to
// that of all together.
std::map<std::string, double> distances(const GraphResults& ours, const GraphResults& right) {
  double whole = 0;
  for (const auto& [name, gradient] : right.gradients) whole += norm(gradient);
  std::map<std::string, double> all = {
      {"logits", std::sqrt(norm(ours.logits, &right.logits) / norm(right.logits))}};
  for (const auto& [name, gradient] : right.gradients)
    all[name] = std::sqrt(norm(ours.gradients.at(name), &gradient) / whole);
  return all;
}

double together(const std::map<std::string, double>& distances) {
  double sum = 0;
  for (const auto& [name, distance] : distances) sum += distance * distance;
  return std::sqrt(sum);
}

// Compares two float32 engines. Per tensor, each is allowed four times what PyTorch's float32 is off from
// float64 on this batch (tests/models/exactness_test.cpp), so the two may be eight times as far apart.
TEST_P(Agreement, WithTheCpu) {
  const Graph graph = network_of(GetParam());
  const GraphResults right = run_graph(graph, cpu(), start_of(GetParam(), graph));
  const GraphResults ours = run_graph(graph, *engine_, start_of(GetParam(), graph));
  for (const auto& [name, distance] : distances(ours, right))
    EXPECT_LE(distance, 8 * GetParam().errors.at(name)) << name;
  const GraphResults again = run_graph(graph, *engine_, start_of(GetParam(), graph));
  EXPECT_EQ(again.losses, ours.losses);
  EXPECT_EQ(again.gradients, ours.gradients);
}

// Both engines round about the same tensors to bf16, so both are about as far from float32. (The CPU fuses
// batch norm and more functions, and rounds nothing between them.) All gradients together must be within a
// quarter (7 % was the most seen in eight models), and each tensor within twice. Chance adds to that: the few
// dozen roundings of a small tensor, a unit whose ReLU a rounding turned on or off (one of VGG-16's makes 3 %
// of the whole), together 10 %. A copy of weights of the wrong step, a gradient rounded downwards or a wrong
// scale is far more.
TEST_P(Agreement, WithTheCpuInBf16) {
  if (!cpu::has_bf16()) GTEST_SKIP() << "the CPU, to be compared with, has no AVX512_BF16";
  const Graph graph = network_of(GetParam());
  const GraphResults exact = run_graph(graph, cpu(), start_of(GetParam(), graph));
  const GraphResults rounded = run_graph(graph, *engine_, start_of(GetParam(), graph), Precision::bf16);
  auto ours = distances(rounded, exact);
  auto theirs = distances(run_graph(graph, cpu(), start_of(GetParam(), graph), Precision::bf16), exact);
  EXPECT_GT(ours.at("logits"), 0);
  EXPECT_LE(ours.extract("logits").mapped(), 2 * theirs.extract("logits").mapped());
  const double whole = together(theirs);
  EXPECT_LE(together(ours), 1.25 * whole);
  for (const auto& [name, distance] : ours) EXPECT_LE(distance, 2 * theirs.at(name) + 0.1 * whole) << name;
  const GraphResults again = run_graph(graph, *engine_, start_of(GetParam(), graph), Precision::bf16);
  EXPECT_EQ(again.losses, rounded.losses);
  EXPECT_EQ(again.gradients, rounded.gradients);
}

// Loops of the host take minutes for most models.
std::vector<GoldenErrors> cifar(bool large) {
  std::vector<GoldenErrors> all = read_golden_errors();
  std::erase_if(all, [large](const GoldenErrors& c) {
    return c.form != Form::cifar || large == (c.model == "squeezenet1_0");
  });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Cifar, Agreement, ::testing::ValuesIn(cifar(false)),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Large, Agreement, ::testing::ValuesIn(cifar(true)),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace antichain
