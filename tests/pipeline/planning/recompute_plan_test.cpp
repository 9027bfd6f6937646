// Plans that recompute what they must are compared with all cuts and all choices of what is recomputed, by
// the step that the simulator finds.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "framework/error.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/planning.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct Tried {
  int64_t bytes = 0;  // of the fullest device
  double step_s = never;
};

class AllPlans {
 public:
  AllPlans(const Profile& profile, PlanOptions options, const Policy& policy)
      : profile_(profile),
        options_(std::move(options)),
        policy_(policy),
        stage_of_(profile.nodes.size(), -1) {
    options_.in_flight = policy.in_flight_on(options_.stages, 1, options_.microbatches);
    cut(0);
  }
  std::vector<Tried> tried;

  double best_s(int64_t limit) const {
    double best = never;
    for (const Tried& plan : tried)
      if (plan.bytes <= limit) best = std::min(best, plan.step_s);
    return best;
  }

 private:
  void cut(size_t n) {
    if (n == profile_.nodes.size()) return choose();
    if (profile_.nodes[n].role == Role::input) return cut(n + 1);
    int first = 0;
    for (const int input : profile_.nodes[n].inputs) first = std::max(first, stage_of_[size_t(input)]);
    for (int s = first; s < options_.stages; ++s) {
      stage_of_[n] = s;
      cut(n + 1);
    }
  }
  void choose() {
    std::vector<std::vector<int>> stages(static_cast<size_t>(options_.stages));
    std::vector<int> may;
    for (size_t n = 0; n < stage_of_.size(); ++n) {
      if (stage_of_[n] >= 0) stages[size_t(stage_of_[n])].push_back(int(n));
      if (profile_.nodes[n].role == Role::compute) may.push_back(int(n));
    }
    if (std::ranges::any_of(stages, &std::vector<int>::empty)) return;
    for (unsigned mask = 0; mask < 1u << may.size(); ++mask) {
      Plan plan = plan_of(profile_, stages);
      for (size_t i = 0; i < may.size(); ++i)
        if (mask >> i & 1) plan.stages[size_t(stage_of_[size_t(may[i])])].recomputed.push_back(may[i]);
      plan = finish_plan(profile_, options_, plan.stages, plan.method, 0);
      Tried& made = tried.emplace_back();
      for (const PlanStage& stage : plan.stages) made.bytes = std::max(made.bytes, stage.memory_bytes);
      made.step_s = step_s(profile_, plan, policy_, options_.microbatches, {});
    }
  }

  const Profile& profile_;
  PlanOptions options_;
  const Policy& policy_;
  std::vector<int> stage_of_;
};

void compare_with_all_plans(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  Profile profile = seed % 2 == 0 ? chain(pick(3, 6)) : random_network(random, pick(3, 5));
  for (ProfileNode& node : profile.nodes) {
    node.cost.output_bytes = pick(1, 1000);
    if (node.role == Role::input) continue;
    node.cost.forward_s = pick(1, 9), node.cost.backward_input_s = pick(1, 9);
    node.cost.param_bytes = pick(0, 300);
    node.cost.stash_bytes = pick(0, 1) * pick(1, 1000);
    node.cost.keeps_output = pick(0, 1) > 0;
  }
  PlanOptions options{
      .stages = pick(1, 3), .objective = Objective::makespan, .microbatches = pick(1, 4), .recompute = true};
  const Policy& policy = pick(0, 1) > 0 ? Policy::one_f_one_b : Policy::gpipe;
  const AllPlans all(profile, options, policy);
  const int64_t least = std::ranges::min(all.tried, {}, &Tried::bytes).bytes;
  const int64_t most = std::ranges::max(all.tried, {}, &Tried::bytes).bytes;
  for (const int64_t limit : {least - 1, least, least + (most - least) / 8, (least + most) / 2, most}) {
    options.cluster.devices.assign(size_t(options.stages), {.memory_bytes = limit});
    if (limit < least) {
      try {
        plan_network(profile, options, Method::antichain, policy);
        FAIL() << "seed " << seed;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(fmt::format("is {} bytes", least)), std::string::npos)
            << "seed " << seed << ": " << error.what();
      }
      continue;
    }
    const Plan plan = plan_network(profile, options, Method::antichain, policy);
    EXPECT_NEAR(plan.step_s, all.best_s(limit), 1e-9) << "seed " << seed << " within " << limit;
    EXPECT_TRUE(plan.proved_optimal()) << "seed " << seed << " within " << limit;
    EXPECT_NEAR(step_s(profile, plan, policy, options.microbatches, options.cluster), plan.step_s, 1e-9);
    for (const PlanStage& stage : plan.stages) EXPECT_LE(stage.memory_bytes, limit) << "seed " << seed;
  }
}

TEST(RecomputePlan, IsAsGoodAsAllPlans) {
  for (unsigned seed = 0; seed < 300; ++seed) compare_with_all_plans(seed);
}

}  // namespace
}  // namespace antichain::test
