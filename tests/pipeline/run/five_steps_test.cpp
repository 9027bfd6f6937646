// Training is held to PyTorch as it is done: stages, schedule, runner and optimiser make the five steps that
// tests/golden/five_steps.py recorded in float64, on one stage and on two.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string_view>

#include "framework/files/state_dict.h"
#include "framework/initialise.h"
#include "layers/cpu/backend.h"
#include "partition/planners/planner.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/train/weights_io.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/models/golden.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

// Returns the network of gradients.txt that a line of five_steps.txt trains.
GoldenErrors drawn_as(const std::string& model) {
  for (const GoldenErrors& profile : read_golden_errors())
    if (profile.model == model && profile.form == Form::cifar) return profile;
  throw std::runtime_error("tests/golden/gradients.txt has no network " + model + " in CIFAR form");
}

// This is the whole network, as tests/models draws it.
Weights drawn_weights(const GoldenErrors& as, const Graph& model) {
  Weights drawn;
  for (const StateEntry& entry : state_entries(model)) {
    const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
    if (entry.buffer)
      initialise(plain, entry.spec->init, 0, entry.name);
    else
      start_of(as, model)(plain, entry.name);
    drawn.add(to_named(entry.name, plain));
  }
  return drawn;
}

// OneBatch gives the same two images at every step, labelled 0 and 1.
class OneBatch : public BatchSource {
 public:
  explicit OneBatch(std::array<int, 2> samples) : samples_(samples) {}
  void fill(std::string_view input, int, const Tensor& out) override {
    if (input == "images") return draw_golden_images(out, samples_);
    for (int i = 0; i < 2; ++i) out.data<int32_t>()[i] = i;
  }

 private:
  const std::array<int, 2> samples_;
};

// Returns the mean losses before each step and after the last.
std::vector<double> train(const GoldenErrors& drawn, const Weights& weights, float rate, int stages,
                          size_t steps) {
  register_cpu_backend();
  const Backend& cpu = backend("cpu");
  std::vector<double> losses(steps + 1);
  run_ranks(stages, [&](JobTransport& transport) {
    Context context(cpu);
    cpu.enter(context);
    const Graph graph = lower(network_of(drawn), cpu);
    const Profile profile = test::priced_by_flops(unpriced(graph, cpu.description()));
    const Plan plan = plan_antichain(profile, {.stages = stages, .cluster = one_link({.bytes_per_s = 1e9})});
    const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 1);
    RankModel model(graph, stage_of_rank(plan, transport.rank()).nodes, context, 0);
    load_weights(model, weights, Fit::whole, "tests/golden");
    StageRunner runner(model, profile, plan, schedule, Mode::train, transport);
    OneBatch batch(drawn.batches[0]);
    for (uint64_t step = 0; step <= steps; ++step) {
      const StepResult mine = runner.run({.step = step, .batch = 2, .rate = rate}, batch);
      if (model.owns(graph.find("loss"))) losses[step] = mine.loss / 2;
    }
  });
  return losses;
}

class FiveStepsOfStages : public ::testing::TestWithParam<GoldenSteps> {};

// 1e-3 as in tests/models: four times what is allowed to PyTorch's own float32, as Winograd's errors are.
TEST_P(FiveStepsOfStages, StayBesideDoublePrecision) {
  const auto& [model, rate, right] = GetParam();
  const GoldenErrors drawn = drawn_as(model);
  const Weights weights = drawn_weights(drawn, network_of(drawn));
  const std::vector<double> one = train(drawn, weights, rate, 1, right.size() - 1);
  for (size_t i = 0; i < right.size(); ++i)
    EXPECT_NEAR(one[i] / right[i], 1, 1e-3) << "loss before step " << i;
  EXPECT_EQ(train(drawn, weights, rate, 2, right.size() - 1), one) << "two stages";
}

INSTANTIATE_TEST_SUITE_P(Cifar, FiveStepsOfStages, ::testing::ValuesIn(read_golden_steps(false)),
                         ::testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Large, FiveStepsOfStages, ::testing::ValuesIn(read_golden_steps(true)),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace antichain
