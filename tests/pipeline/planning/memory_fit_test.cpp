// What is planned fits by its compiled program, whatever the schedule, and a refusal names a memory that
// would do. Small networks are compared with all their plans.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

#include "framework/error.h"
#include "pipeline/planning/schedule_choice.h"
#include "tests/pipeline/planning/all_plans.h"

namespace antichain::test {
namespace {

// Returns the bytes that a refusal names, or 0 where there is a plan.
int64_t named_bytes(const ScheduleChoice& choice, const Profile& profile, const PlanOptions& options) {
  try {
    choice.plan(profile, options, Method::antichain);
    return 0;
  } catch (const Error& error) {
    const std::string text = error.what(), before = " do is ";
    const size_t at = text.find(before);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + before.size()));
  }
}

int64_t program_bytes(const ScheduleChoice& choice, const Profile& profile, const PlanOptions& options,
                      const Plan& plan) {
  return std::ranges::max(peak_memory_bytes(choice.schedule(profile, plan, options), plan, profile));
}

void compare_programs(unsigned seed, bool recompute) {
  SCOPED_TRACE(fmt::format("seed {}, recompute {}", seed, recompute));
  std::mt19937 random(seed);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  Profile profile = uneven_network(random, seed % 2 == 0, recompute ? 4 : 8);
  PlanOptions options{.stages = pick(1, 3),
                      .objective = Objective::makespan,
                      .microbatches = pick(1, 4),
                      .recompute = recompute};
  if (seed % 3 == 2) sit_together(random, profile, options.stages);
  const char* names[] = {"1f1b", "gpipe", "zb-h1"};
  const ScheduleChoice choice{.name = names[pick(0, 2)]};
  const AllPlans all(profile, options, choice.policy(), Counted::program);
  const int64_t least = all.least_bytes(), most = all.most_bytes();
  for (const int64_t limit : {least - 1, least, least + (most - least) / 8, (least + most) / 2, most}) {
    options.cluster = equal_devices(options.stages, {}, limit);
    if (limit < least) {
      EXPECT_EQ(named_bytes(choice, profile, options), least);
      continue;
    }
    const Plan plan = choice.plan(profile, options, Method::antichain);
    EXPECT_LE(program_bytes(choice, profile, options, plan), limit);
    EXPECT_NEAR(plan.step_s, all.best_s(limit), 1e-9) << "within " << limit;
  }
}

TEST(MemoryFit, IsAsGoodAsAllProgramsOfSmallNetworks) {
  for (unsigned seed = 0; seed < 60; ++seed) compare_programs(seed, seed % 4 < 2);
}

// Messages and buffers that several stages of a rank have apart are not in the formula.
TEST(MemoryFit, NoPlanTakesMoreThanItsLimitAndARefusalNamesWhatWouldDo) {
  std::mt19937 random(3);
  Profile profile = chain(9);
  for (ProfileNode& node : profile.nodes)
    node.cost.stash_bytes = 1 + int64_t(random() % 3000),
    node.cost.output_bytes = 100 + int64_t(random() % 900);
  for (const char* name : {"1f1b", "zb-v"}) {
    SCOPED_TRACE(name);
    const ScheduleChoice choice{.name = name};
    PlanOptions options{.stages = 3,
                        .chunks = default_chunks(choice.policy().placement),
                        .objective = Objective::makespan,
                        .microbatches = 4};
    const auto within = [&](int64_t bytes) {
      options.cluster = equal_devices(3, {}, bytes);
      return options;
    };
    const int64_t most =
        program_bytes(choice, profile, options, choice.plan(profile, options, Method::antichain));
    const int64_t least = named_bytes(choice, profile, within(most / 8));
    ASSERT_GT(least, most / 8);
    EXPECT_LT(least, most);
    EXPECT_GT(named_bytes(choice, profile, within(least - least / 100 - 1)), 0);
    for (const int64_t limit : {least, (least + most) / 2, most}) {
      const Plan plan = choice.plan(profile, within(limit), Method::antichain);
      EXPECT_LE(program_bytes(choice, profile, options, plan), limit);
      EXPECT_LE(plan.lower_bound_s, plan.step_s);
      EXPECT_EQ(choice.judge(profile, plan, options).step_s, plan.step_s);
    }
    const Plan large = choice.plan(profile, within(most), Method::antichain);
    EXPECT_THROW(choice.judge(profile, large, within(most / 2)), Error);
  }
}

// What is recomputed by name is there in a working set, of which the costs that stages are cut by know
// nothing.
TEST(MemoryFit, ARefusalNamesWhatWouldDoWhateverIsRecomputed) {
  Profile profile = chain(5);
  for (ProfileNode& node : profile.nodes) node.cost.stash_bytes = 3000, node.cost.output_bytes = 500;
  for (const Recomputation& asked : {Recomputation{.all = true}, Recomputation{.nodes = {"n2", "n3"}}}) {
    SCOPED_TRACE(asked.all ? "all" : "two nodes");
    const ScheduleChoice choice{.recomputation = asked};
    PlanOptions options{.stages = 2, .objective = Objective::makespan, .microbatches = 4};
    const auto within = [&](int64_t bytes) {
      options.cluster = equal_devices(2, {}, bytes);
      return options;
    };
    const int64_t least = named_bytes(choice, profile, within(9000));
    ASSERT_GT(least, 9000);
    const Plan plan = choice.plan(profile, within(least), Method::antichain);
    EXPECT_LE(program_bytes(choice, profile, options, plan), least);
    EXPECT_GT(named_bytes(choice, profile, within(least - least / 100 - 1)), 0);
  }
}

}  // namespace
}  // namespace antichain::test
