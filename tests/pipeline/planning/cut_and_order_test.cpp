// Cut and order that are searched together are never worse than a cut for a named schedule with its best
// order, and stay above the bound of all plans.
#include "pipeline/planning/cut_and_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/planning.h"
#include "pipeline/planning/schedule_choice.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

Profile network_of(unsigned seed) {
  std::mt19937 random(seed);
  Profile profile = random_network(random, 14);
  for (ProfileNode& node : profile.nodes) node.cost.backward_weight_s = double(random() % 9);
  return profile;
}

PlanOptions options_for(Objective objective, Steps steps) {
  return {.stages = 3,
          .cluster = one_link({.bytes_per_s = 400}),
          .objective = objective,
          .microbatches = 6,
          .steps = steps};
}

SearchLimits at_most(int limit) {
  return {
      .of_stages = [limit](const StageSums& sums,
                           const std::vector<int>&) { return std::vector<int>(sums.stages.size(), limit); },
      .of_plan = [limit](const Plan& plan) { return std::vector<int>(size_t(plan.ranks()), limit); }};
}

TEST(CutAndOrder, IsSimulatedAndWithinItsLimits) {
  for (unsigned seed = 0; seed < 6; ++seed)
    for (const Steps steps : {Steps::apart, Steps::overlapped}) {
      SCOPED_TRACE(seed);
      const Profile profile = network_of(seed);
      const Objective objective = steps == Steps::apart ? Objective::makespan : Objective::period;
      const PlanOptions options = options_for(objective, steps);
      const CutAndOrder found = cut_and_order(profile, options, policy("zb-h1"), at_most(4));
      validate(found.order.schedule, profile, found.plan);
      const std::vector<double> peaks = peak_in_flight(found.order.schedule);
      EXPECT_LE(std::ranges::max(peaks), 4);
      const Timeline timeline = simulate(found.order.schedule, found.plan, profile, options.cluster, steps);
      EXPECT_DOUBLE_EQ(found.plan.step_s, timeline.step_s);
      EXPECT_DOUBLE_EQ(found.plan.period_s, timeline.period_s);
      EXPECT_GE(found.plan.objective_s(), pace_bound_s(profile, options, true));
    }
}

TEST(CutAndOrder, SearchesTwoStagesARankTogether) {
  for (const char* name : {"zb-v", "interleaved"}) {
    const Profile profile = network_of(7);
    PlanOptions options = options_for(Objective::makespan, Steps::apart);
    options.chunks = 2;
    options.stages = 2;
    const CutAndOrder found = cut_and_order(profile, options, policy(name), at_most(2));
    EXPECT_TRUE(has_several_stages_a_rank(found.plan));
    validate(found.order.schedule, profile, found.plan);
    EXPECT_LE(std::ranges::max(peak_in_flight(found.order.schedule)), 2);
    EXPECT_DOUBLE_EQ(found.plan.step_s,
                     simulate(found.order.schedule, found.plan, profile, options.cluster).step_s);
    EXPECT_GE(found.plan.step_s, pace_bound_s(profile, options, true));
  }
}

// The better plan is kept, and the schedule that is made for it has the plan's time.
TEST(CutAndOrder, IsWhatAutoPlans) {
  int better = 0;
  for (unsigned seed = 0; seed < 3; ++seed)
    for (const Steps steps : {Steps::apart, Steps::overlapped}) {
      SCOPED_TRACE(seed);
      const Profile profile = network_of(seed);
      const Objective objective = steps == Steps::apart ? Objective::makespan : Objective::period;
      const PlanOptions options = options_for(objective, steps);
      const ScheduleChoice choice{.name = std::string(planned_order)};
      const Plan plan = choice.plan(profile, options, Method::antichain);
      const Schedule schedule = choice.schedule(profile, plan, options);
      const Timeline timeline = simulate(schedule, plan, profile, options.cluster, steps);
      EXPECT_DOUBLE_EQ(plan.step_s, timeline.step_s);
      EXPECT_DOUBLE_EQ(plan.period_s, timeline.period_s);
      EXPECT_LE(plan.lower_bound_s, plan.objective_s());
      for (const Policy* named : {&policy("zb-h1"), &Policy::one_f_one_b}) {
        const Plan cut = plan_network(profile, options, Method::antichain, *named);
        EXPECT_LE(plan.pace_s(), cut.pace_s() * (1 + 1e-9)) << named->name;
        better += plan.pace_s() < cut.pace_s() * (1 - 1e-9);
      }
    }
  EXPECT_GT(better, 3);
}

// What is made small, what is bounded and what is named are the same.
TEST(CutAndOrder, PlansForThePeriodWhereStepsOverlap) {
  const Profile profile = network_of(4);
  const ScheduleChoice choice{.name = std::string(planned_order)}, named{.name = "zb-h1"};
  for (const Steps steps : {Steps::apart, Steps::overlapped}) {
    const PlanOptions options = options_for(Objective::makespan, steps);
    const Plan plan = choice.plan(profile, options, Method::antichain);
    EXPECT_EQ(plan.objective, steps == Steps::apart ? Objective::makespan : Objective::period);
    EXPECT_EQ(choice.objective(options), plan.objective);
    EXPECT_LE(plan.lower_bound_s, plan.objective_s());
    EXPECT_EQ(named.objective(options), Objective::makespan);
  }
}

// The order that comes with the plan is kept, so the schedule is made without a search.
TEST(CutAndOrder, OneSearchIsForThePlanAndItsSchedule) {
  const Profile profile = network_of(5);
  const PlanOptions options = options_for(Objective::period, Steps::overlapped);
  const ScheduleChoice choice{.name = std::string(planned_order)};
  const Plan plan = choice.plan(profile, options, Method::antichain);
  const std::vector<int> limits = choice.limits(profile, plan, options);
  const OrderMemo::Asked asked{.times = pipeline_times(profile, plan, options.cluster, options.microbatches),
                               .most_in_flight = {limits.begin(), limits.end()},
                               .steps = options.steps};
  const RankOrders* kept = choice.memo->find(asked);
  ASSERT_NE(kept, nullptr);
  const Schedule schedule = choice.schedule(profile, plan, options);
  for (size_t s = 0; s < kept->size(); ++s) {
    RankOrder order;
    for (const Action& a : schedule.ranks[s])
      if (computes(a.verb)) order.push_back({a.verb, a.stage, a.microbatch});
    EXPECT_EQ(order, (*kept)[s]);
  }
}

TEST(CutAndOrder, IsTheSameEveryTime) {
  const Profile profile = network_of(1);
  const PlanOptions options = options_for(Objective::makespan, Steps::apart);
  const CutAndOrder a = cut_and_order(profile, options, policy("zb-h1"), at_most(3));
  const CutAndOrder b = cut_and_order(profile, options, policy("zb-h1"), at_most(3));
  EXPECT_EQ(plan_hash(a.plan), plan_hash(b.plan));
  EXPECT_EQ(a.order.schedule.ranks, b.order.schedule.ranks);
}

TEST(ObjectivePeriod, IsForStepsThatOverlapAndHasABoundOfItsOwn) {
  const Profile profile = network_of(2);
  const PlanOptions options = options_for(Objective::period, Steps::overlapped);
  const Plan plan = plan_network(profile, options, Method::antichain, policy("zb-h1"));
  EXPECT_GT(plan.period_s, 0);
  EXPECT_LE(plan.period_s, plan.step_s);
  EXPECT_LE(plan.lower_bound_s, plan.period_s);
  EXPECT_EQ(plan.objective_s(), plan.period_s);
  PlanOptions makespan = options;
  makespan.objective = Objective::makespan;
  EXPECT_LE(plan.period_s,
            plan_network(profile, makespan, Method::antichain, policy("zb-h1")).period_s * (1 + 1e-9));
}

}  // namespace
}  // namespace antichain::test
