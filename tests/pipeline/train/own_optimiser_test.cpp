// Tests that a run takes an optimiser from outside: a description with two slots, and an update of one
// parameter, are registered here. They train, the slots are saved by name, the run goes on to the same bits,
// and every estimate of memory counts the slots.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "framework/backend.h"
#include "framework/files/checkpoint_folder.h"
#include "layers/cpu/backend.h"
#include "partition/planners/planner.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/stage/memory_need.h"
#include "pipeline/stage/stage_state.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/run/two_stages.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain::test {
namespace {

constexpr float adams_rate = 0.01f;

// Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, algorithm 1. It needs the step's
// number for the corrections of its two means.
class TestAdam : public Optimiser {
 public:
  std::string_view name() const override { return "test_adam"; }
  std::string str() const override { return fmt::format("decays {} and {}", of_mean, of_square); }
  std::vector<std::string> slots(const ParamSpec&) const override { return {"mean", "square"}; }

  const float of_mean = 0.9f, of_square = 0.999f;
};

void test_adam(Context&, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const auto& adam = static_cast<const TestAdam&>(optimiser);
  const auto steps = float(rate.step + 1);
  float *w = t.w.data<float>(), *mean = t.slots[0].data<float>(), *square = t.slots[1].data<float>();
  for (int64_t i = 0; i < t.w.elements(); ++i) {
    const float g = t.dw.data<float>()[i];
    mean[i] = adam.of_mean * mean[i] + (1 - adam.of_mean) * g;
    square[i] = adam.of_square * square[i] + (1 - adam.of_square) * g * g;
    const float m = mean[i] / (1 - std::pow(adam.of_mean, steps));
    w[i] -= rate.value * m / (std::sqrt(square[i] / (1 - std::pow(adam.of_square, steps))) + 1e-8f);
  }
}

std::shared_ptr<const Optimiser> adam() {
  static const bool registered = (register_update("cpu", "test_adam", one_by_one(test_adam)), true);
  (void)registered;
  return std::make_shared<TestAdam>();
}

TrainingRun train_by_adam(int steps, int stages, const std::string& folder, float of_rate = adams_rate) {
  TrainingCase c{.microbatch = 2, .microbatches = 2, .steps = 4, .rate = of_rate, .epochs = 1};
  c.until = steps;
  c.checkpoint = folder;
  c.optimiser = adam();
  std::filesystem::create_directory(folder);
  const auto plan = [](const Profile& profile, int count) {
    return plan_antichain(profile, {.stages = count});
  };
  return train_on_threads(c, stages, plan, by_policy(Policy::one_f_one_b));
}

std::map<std::string, NamedTensor> saved(const std::string& folder, int64_t step) {
  return checkpoint_contents(CheckpointFolder(folder).of_step(step));
}

TEST(OwnOptimiser, ItsFirstStepIsItsOwn) {
  const TemporaryFolder folder;
  train_by_adam(1, 1, folder.str() + "/still", 0);
  train_by_adam(1, 1, folder.str() + "/run");
  const auto before = saved(folder.str() + "/still", 1), after = saved(folder.str() + "/run", 1);
  const auto values = [](const auto& all, const char* name) { return std::get<0>(all.at(name).values); };
  const std::vector<float> w0 = values(before, "fc.weight"), w1 = values(after, "fc.weight"),
                           mean = values(after, "mean/fc.weight"), square = values(after, "square/fc.weight");
  ASSERT_EQ(w0.size(), 2560u);
  for (size_t i = 0; i < w0.size(); ++i) {  // corrected by the step's number, it is of length 1
    if (mean[i] == 0) continue;
    EXPECT_NEAR(w0[i] - w1[i], std::copysign(adams_rate, mean[i]), adams_rate * 1e-2) << i;
    EXPECT_NEAR(square[i], mean[i] * mean[i] / 10, square[i] * 1e-3) << i;
  }
}

TEST(OwnOptimiser, ItsSlotsAreSavedByNameAndGoOnToTheSameBits) {
  const TemporaryFolder folder;
  const std::string whole = folder.str() + "/whole", part = folder.str() + "/part";
  const TrainingRun at_once = train_by_adam(4, 1, whole);
  train_by_adam(2, 2, part);
  const TrainingRun rest = train_by_adam(4, 3, part);
  EXPECT_EQ(rest.first_step, 2);
  EXPECT_EQ(rest.state, at_once.state);
  const auto state = saved(whole, 4);
  EXPECT_TRUE(saved(part, 4) == state);
  for (const char* slot : {"mean", "square"}) {
    EXPECT_EQ(state.at(std::string(slot) + "/stem.weight").shape, (std::vector<int64_t>{16, 3, 3, 3}));
    EXPECT_FALSE(state.contains(std::string(slot) + "/stem.norm.running_mean"));
  }
  EXPECT_FALSE(state.contains("momentum/stem.weight"));
}

TEST(OwnOptimiser, EveryEstimateOfMemoryCountsItsSlots) {
  TwoStages two;
  const Optimiser& usual = *default_optimiser();
  const std::shared_ptr<const Optimiser> own = adam();
  const Profile profile = unpriced(two.graph, "cpu", *own);
  for (const int stage : {0, 1}) {
    int64_t weights = 0;  // of which SGD keeps one copy more, and this two
    for (const int id : two.plan.stages[stage].nodes) {
      weights += profile.nodes[id].cost.param_bytes;
      EXPECT_EQ(profile.nodes[id].cost.slot_bytes(), 2 * profile.nodes[id].cost.param_bytes);
    }
    ASSERT_GT(weights, 0);
    EXPECT_EQ(peak_memory_bytes(two.schedule, two.plan, profile)[stage],
              peak_memory_bytes(two.schedule, two.plan, two.profile)[stage] + weights);
    const auto need = [&](const Optimiser& optimiser) {
      return step_need(two.graph, optimiser, two.profile, two.plan, two.schedule, stage).step.held();
    };
    EXPECT_EQ(need(*own), need(usual) + weights);
    const auto& nodes = two.plan.stages[stage].nodes;
    const auto state = [&](const std::shared_ptr<const Optimiser>& optimiser) {
      return state_bytes(RankModel(two.graph, nodes, two.context, 0, optimiser)).all;
    };
    EXPECT_EQ(state(own), state(default_optimiser()) + weights);
  }
}

}  // namespace
}  // namespace antichain::test
