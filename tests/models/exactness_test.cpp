// Tests how exact the engine is, without Python. Its float32 is compared with our float64 reference, which
// agrees with PyTorch's float64 within 1e-7 (numbers_test.cpp). layers/exactness.h says how many times as far
// off as PyTorch's own float32 a tensor may be. PyTorch's figures are from a CPU with AVX-512, where sums
// have sixteen lanes. The batches are such that no number lies near a kink of ReLU or max pooling
// (tests/golden/gradients.py), so that what is compared is rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "framework/backend.h"
#include "layers/conv2d.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/winograd.h"
#include "layers/exactness.h"
#include "models/model.h"
#include "tests/layers/reference/reference.h"
#include "tests/models/golden.h"
#include "tests/models/graph_run.h"
#include "tests/models/judged_engine.h"

namespace antichain {
namespace {

const Backend& engine() {
  std::string why;
  return *judged_engine(why);
}

using Numbers = std::vector<double>;

double squares(const Numbers& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return sum;
}

double squared_error(const Numbers& ours, const Numbers& right) {
  double sum = 0;
  for (size_t i = 0; i < right.size(); ++i) sum += (ours[i] - right[i]) * (ours[i] - right[i]);
  return sum;
}

// Returns errors by tensor: logits and losses relative to their own norm, gradients relative to that of all
// together.
std::map<std::string, double> squared_errors(const GraphResults& ours, const GraphResults& right) {
  double whole = 0;
  for (const auto& [name, gradient] : right.gradients) whole += squares(gradient);
  std::map<std::string, double> errors = {
      {"logits", squared_error(ours.logits, right.logits) / squares(right.logits)},
      {"losses", squared_error(ours.losses, right.losses) / squares(right.losses)}};
  for (const auto& [name, gradient] : right.gradients)
    errors[name] = squared_error(ours.gradients.at(name), gradient) / whole;
  return errors;
}

// Returns whether any pass of any convolution uses Winograd: then the logits pass through it, and with them
// all gradients.
bool uses_winograd(const Graph& graph) {
  using enum cpu::Winograd::Pass;
  return std::any_of(graph.begin(), graph.end(), [&](const Node& node) {
    const auto* conv = dynamic_cast<const Conv2d*>(node.op.get());
    return conv && std::ranges::any_of(std::array{forward, data, weights}, [&](cpu::Winograd::Pass pass) {
             return cpu::Winograd::pays(conv->options, graph.shape(node.inputs[0]), node.signature.y.shape,
                                        Precision::float32, pass);
           });
  });
}

class Exactness : public ::testing::TestWithParam<GoldenErrors> {
 protected:
  void SetUp() override {
    std::string why;
    if (!judged_engine(why)) GTEST_SKIP() << why;
  }
};

// Three batches: errors of single numbers are random, and their root mean square over few is, too. PyTorch's
// is over six.
constexpr size_t batches = 3;

TEST_P(Exactness, ErrorsAreAtMostTwicePyTorchs) {
  const GoldenErrors& c = GetParam();
  const Graph graph = network_of(c);
  std::map<std::string, double> sums;
  for (size_t batch = 0; batch < batches; ++batch) {
    const GraphResults right = run_graph(graph, reference::backend(), start_of(c, graph, batch));
    const GraphResults ours = run_graph(graph, engine(), start_of(c, graph, batch));
    for (const auto& [name, error] : squared_errors(ours, right)) sums[name] += error;
  }
  ASSERT_EQ(sums.size(), c.errors.size());
  const bool has_fewer_lanes = engine().name() == "cpu" && !cpu::has_avx512();
  const double factor =
      uses_winograd(graph) || has_fewer_lanes ? times_pytorchs_error_at_most : times_pytorchs_error;
  double worst = 0;
  for (const auto& [name, square] : sums) {
    const double error = std::sqrt(square / double(batches)), theirs = c.errors.at(name);
    EXPECT_LE(error, factor * theirs) << name << ": " << error / theirs << " times PyTorch's";
    worst = std::max(worst, error / theirs);
  }
  RecordProperty("worst_ratio", std::to_string(worst));
}

std::string name_of(const ::testing::TestParamInfo<GoldenErrors>& info) {
  return info.param.model + (info.param.form == Form::cifar ? "_cifar" : "_imagenet");
}

std::vector<GoldenErrors> cases(bool wanted_large) {
  std::vector<GoldenErrors> all = read_golden_errors();
  std::erase_if(all, [&](const GoldenErrors& c) { return large(c.model, c.form) != wanted_large; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Exactness, ::testing::ValuesIn(cases(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Large, Exactness, ::testing::ValuesIn(cases(true)), name_of);

// Five steps of SGD at a rate at which PyTorch's float32 stays within 2.5e-4 of its float64
// (tests/golden/five_steps.py): ours within 1e-3, in each loss and in the distance between the weights
// relative to how far they have moved. Winograd is allowed four times PyTorch's errors, hence the limit.
class FiveSteps : public ::testing::TestWithParam<GoldenSteps> {};

TEST_P(FiveSteps, StayBesideDoublePrecision) {
  std::string why;
  if (!judged_engine(why)) GTEST_SKIP() << why;
  const std::string& model = GetParam().model;
  const float rate = GetParam().rate;
  const std::vector<double>& losses = GetParam().losses;
  const std::vector<GoldenErrors> networks = read_golden_errors();
  const auto c = std::find_if(networks.begin(), networks.end(), [&](const GoldenErrors& n) {
    return n.model == model && n.form == Form::cifar;
  });
  ASSERT_NE(c, networks.end());
  const Graph graph = network_of(*c);
  const auto train = [&](const Backend& backend, int steps) {
    return train_graph(graph, backend, start_of(*c, graph), default_optimiser(), rate, steps);
  };
  const GraphTraining before = train(reference::backend(), 0), right = train(reference::backend(), 5);
  const GraphTraining ours = train(engine(), 5);
  // PyTorch's float64 and ours sum in another order; five steps magnify 1e-16 less than 1e-3 magnifies 1e-7.
  ASSERT_EQ(right.losses.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(right.losses[i] / losses[i], 1, 1e-6) << "the reference's loss before step " << i;
    EXPECT_NEAR(ours.losses[i] / losses[i], 1, 1e-3) << "loss before step " << i;
  }
  double apart = 0, moved = 0;
  for (const auto& [name, weights] : right.weights) {
    apart += squared_error(ours.weights.at(name), weights);
    moved += squared_error(before.weights.at(name), weights);
  }
  EXPECT_GT(moved, 0);
  EXPECT_LT(std::sqrt(apart / moved), 1e-3);
  RecordProperty("distance", std::to_string(std::sqrt(apart / moved)));
}

INSTANTIATE_TEST_SUITE_P(Cifar, FiveSteps, ::testing::ValuesIn(read_golden_steps(false)),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Large, FiveSteps, ::testing::ValuesIn(read_golden_steps(true)),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace antichain
