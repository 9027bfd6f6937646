// Plans that recompute what they must are compared with all cuts and all choices of what is recomputed, by
// the step that the simulator finds.
#include <gtest/gtest.h>

#include "framework/error.h"
#include "pipeline/planning/planning.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/all_plans.h"

namespace antichain::test {
namespace {

void compare_with_all_plans(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  Profile profile = uneven_network(random, seed % 2 == 0, 5);
  PlanOptions options{
      .stages = pick(1, 3), .objective = Objective::makespan, .microbatches = pick(1, 4), .recompute = true};
  if (seed % 5 == 4) sit_together(random, profile, options.stages);
  const Policy& policy = pick(0, 1) > 0 ? Policy::one_f_one_b : Policy::gpipe;
  const AllPlans all(profile, options, policy, Counted::formula);
  const int64_t least = all.least_bytes(), most = all.most_bytes();
  for (const int64_t limit : {least - 1, least, least + (most - least) / 8, (least + most) / 2, most}) {
    options.cluster.devices.assign(size_t(options.stages), {.memory_bytes = limit});
    if (limit < least) {
      try {
        plan_network(profile, options, Method::antichain, policy);
        FAIL() << "seed " << seed;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(fmt::format("would do is {} bytes", least)),
                  std::string::npos)
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

// Of a long chain only some cuts are compared by what they need.
TEST(RecomputePlan, ARefusalSaysWhetherItIsProved) {
  Profile profile = chain(80);
  for (ProfileNode& node : profile.nodes) node.cost.output_bytes = node.cost.stash_bytes = 10;
  PlanOptions options{.stages = 1, .objective = Objective::makespan, .microbatches = 4, .recompute = true};
  for (const auto& [stages, text] : {std::pair(1, "the smallest that would do is"),
                                     std::pair(2, "the smallest that was found to do is")}) {
    options.stages = stages;
    options.cluster = equal_devices(stages, {}, 1);
    try {
      plan_network(profile, options, Method::antichain, Policy::one_f_one_b);
      FAIL() << stages;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace antichain::test
