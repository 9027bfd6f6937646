// These tests are about the one entry to planning: every objective, the step beside the plan, and memory as a
// hard limit.
#include "pipeline/planning/planning.h"

#include <gtest/gtest.h>

#include "partition/plan/finish_plan.h"
#include "partition/planners/planner.h"
#include "pipeline/planning/schedule_choice.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

const NodeCost cost = {
    .forward_s = 1, .backward_input_s = 2, .output_bytes = 10, .param_bytes = 100, .stash_bytes = 7};

constexpr Objective objectives[] = {Objective::compute, Objective::compute_or_transfer, Objective::makespan};

PlanOptions options(int stages, Objective objective) {
  return {
      .stages = stages, .cluster = one_link({.bytes_per_s = 100}), .objective = objective, .microbatches = 6};
}

// antichain may choose another of the best plans, with a shorter step.
TEST(PlanNetwork, LeavesPlansByBottleneckAsTheyAreAndAddsTheirStep) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    const Profile profile = random_network(random, 12);
    for (const Objective objective : {Objective::compute, Objective::compute_or_transfer})
      for (const Method method :
           {Method::antichain, Method::uniform, Method::block, Method::pipedream, Method::data_parallel}) {
        const PlanOptions o = options(3, objective);
        const Plan own = planner(method)(profile, o),
                   plan = plan_network(profile, o, method, Policy::one_f_one_b);
        if (method == Method::antichain)
          EXPECT_LE(plan.step_s, step_s(profile, own, Policy::one_f_one_b, 6, o.cluster));
        else
          EXPECT_EQ(plan_hash(plan), plan_hash(own));
        EXPECT_EQ(plan.objective, objective);
        EXPECT_EQ(plan.bottleneck_s, own.bottleneck_s);
        EXPECT_EQ(plan.lower_bound_s, own.lower_bound_s);
        const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 6);
        EXPECT_EQ(plan.step_s, simulate(schedule, plan, profile, o.cluster).step_s);
      }
  }
}

TEST(PlanNetwork, JudgesAnotherMethodsPlanByItsStep) {
  const Profile profile = chain(9, cost);
  for (const Method method : {Method::uniform, Method::block, Method::data_parallel}) {
    const Plan plan = plan_network(profile, options(3, Objective::makespan), method, Policy::gpipe);
    const Plan own = planner(method)(profile, options(3, Objective::compute_or_transfer));
    EXPECT_EQ(plan.stages.size(), own.stages.size());
    EXPECT_EQ(plan.objective, Objective::makespan);
    EXPECT_EQ(plan.objective_s(), plan.step_s);
    EXPECT_GT(plan.lower_bound_s, 0);
    EXPECT_LE(plan.lower_bound_s, plan.step_s);
    if (method == Method::data_parallel) continue;  // it has replicas, the next has none
    EXPECT_LE(plan_network(profile, options(3, Objective::makespan), Method::antichain, Policy::gpipe).step_s,
              plan.step_s);
  }
}

TEST(PlanNetwork, RefusesWhatItCannotPlanFor) {
  const Profile profile = chain(4, cost);
  expect_error(
      [&] { plan_network(profile, options(2, Objective::compute), Method::antichain, Policy::forward_only); },
      {"forward-only", "no backwards"});
  for (const Objective objective : objectives) {
    expect_error(
        [&] { plan_network(profile, options(9, objective), Method::antichain, Policy::one_f_one_b); },
        {"9 stages", "4 nodes"});
    expect_error(
        [&] { plan_network(profile, options(7, objective), Method::data_parallel, Policy::one_f_one_b); },
        {"7 replicas", "6 micro-batches"});
  }
}

// With 4 equal nodes in 2 stages, the first stage has 2 micro-batches in flight, with GPipe all 6.
TEST(PlanNetwork, MemoryIsAHardLimitForEveryMethod) {
  const Profile profile = chain(4, cost);
  const auto needed = [](Policy policy) { return 3 * 200 + (policy == Policy::gpipe ? 6 : 2) * 2 * 7; };
  for (const Policy& policy : {Policy::one_f_one_b, Policy::gpipe})
    for (const Objective objective : objectives)
      for (const Method method : {Method::uniform, Method::antichain}) {
        PlanOptions o = options(2, objective);
        o.cluster = equal_devices(2, {}, needed(policy));
        const Plan plan = plan_network(profile, o, method, policy);
        EXPECT_EQ(plan.stages[0].memory_bytes, needed(policy));
        o.cluster = equal_devices(2, {}, needed(policy) - 1);
        const std::string bytes = fmt::format("{} bytes", needed(policy));
        if (method == Method::uniform)
          expect_error([&] { plan_network(profile, o, method, policy); },
                       {"stage 0", "uniform", bytes, fmt::format("has {}", needed(policy) - 1)});
        else
          expect_error([&] { plan_network(profile, o, method, policy); }, {"does not fit the memory"});
      }
}

// A plan that was made, and is read back, is judged as it was made. Nothing is searched for that: a search of
// no states would be refused.
TEST(GivenPlan, IsSaidToBeWhatItWasAsItWasMade) {
  const ScheduleChoice choice;
  std::mt19937 random(4);
  for (int trial = 0; trial < 20; ++trial) {
    const Profile profile = random_network(random, 8);
    for (const Objective objective : objectives) {
      PlanOptions o = options(3, objective);
      if (trial % 2) o.replicas.automatic = true;
      const Plan made = choice.plan(profile, o, Method::antichain);
      o.max_states = 0;
      const Plan judged = choice.judge(profile, made, o);
      EXPECT_EQ(plan_hash(judged), plan_hash(made));
      EXPECT_EQ(judged.objective, objective);
      EXPECT_EQ(judged.method, "antichain");
      EXPECT_EQ(judged.bottleneck_s, made.bottleneck_s);
      EXPECT_EQ(judged.step_s, made.step_s);
      EXPECT_EQ(judged.lower_bound_s, made.lower_bound_s);
      EXPECT_EQ(judged.gap(), made.gap());
      EXPECT_EQ(judged.proved_optimal(), made.proved_optimal());
    }
  }
}

// What a bound was not proved for has none, and an edited plan for the same has it still.
TEST(GivenPlan, HasItsBoundWhereItWasProvedForTheSame) {
  const ScheduleChoice choice;
  const Profile profile = chain(6, cost);
  const PlanOptions by_step = options(3, Objective::makespan), by_stage = options(3, Objective::compute);
  const Plan made = choice.plan(profile, by_step, Method::antichain);
  const auto bound_s = [](const ScheduleChoice& by, const Profile& p, const Plan& plan, PlanOptions o) {
    o.max_states = 0;
    const Plan judged = by.judge(p, plan, o);
    EXPECT_FALSE(judged.lower_bound_s == 0 && judged.proved_optimal());
    return judged.lower_bound_s;
  };
  EXPECT_EQ(bound_s(choice, profile, made, by_step), made.lower_bound_s);
  Plan edited = made;
  edited.stages[1].nodes.insert(edited.stages[1].nodes.begin(), edited.stages[0].nodes.back());
  edited.stages[0].nodes.pop_back();
  EXPECT_EQ(bound_s(choice, profile, edited, by_step), made.lower_bound_s);
  Plan unknown = made;
  unknown.bound_for.clear();
  EXPECT_EQ(bound_s(choice, profile, unknown, by_step), 0) << "an old file does not say it";
  unknown = made;
  unknown.lower_bound_s = 2 * made.step_s;
  EXPECT_EQ(bound_s(choice, profile, unknown, by_step), 0) << "that is no bound";

  Profile slower = profile;
  slower.nodes[2].cost.forward_s += 1;
  EXPECT_EQ(bound_s(choice, slower, made, by_step), 0);
  EXPECT_EQ(bound_s({"gpipe"}, profile, made, by_step), 0);
  EXPECT_EQ(bound_s(choice, profile, made, by_stage), 0);
  PlanOptions other = by_step;
  other.cluster.within_node.bytes_per_s *= 2;
  EXPECT_EQ(bound_s(choice, profile, made, other), 0);
  other = by_step;
  other.microbatches = 8;
  EXPECT_EQ(bound_s(choice, profile, made, other), 0);
  // The slowest stage is the same with other micro-batches, in any order.
  const Plan even = choice.plan(profile, by_stage, Method::antichain);
  other.objective = Objective::compute;
  EXPECT_EQ(bound_s({"gpipe"}, profile, even, other), even.lower_bound_s);
}

// A schedule from a file may be shorter than the planner's best under a policy: an evaluation is shorter, and
// so is zb-h2 where the policy is 1F1B. What was planned for any order has a bound for all that train.
TEST(GivenPlan, BoundsTheStepOfAGivenScheduleByWhatHoldsForEveryOrder) {
  const Profile profile = chain(8, {.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1});
  const PlanOptions o = options(4, Objective::makespan);
  const ScheduleChoice one_f_one_b, any{std::string(planned_order)};
  const Plan made = one_f_one_b.plan(profile, o, Method::antichain),
             made_for_any = any.plan(profile, o, Method::antichain);
  const auto judged = [&](const char* name, const Plan& plan) {
    return one_f_one_b.judge(profile, plan, o, make_schedule(profile, plan, policy(name), 6));
  };
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-h2"}) {
    const Plan plan = judged(name, made_for_any);
    EXPECT_GT(plan.lower_bound_s, 0) << name;
    EXPECT_LE(plan.lower_bound_s, plan.step_s) << name;
    EXPECT_EQ(judged(name, made).lower_bound_s, 0) << name;
  }
  EXPECT_LT(judged("zb-h2", made).step_s, made.step_s);
  EXPECT_EQ(judged("forward-only", made_for_any).lower_bound_s, 0);
}

// For every policy of several stages, method and objective: stages on their ranks, priced and simulated as a
// plan from a file would be, and no slower than the cheap methods.
TEST(PlanNetwork, GivesEveryStageItsRankByThePlacement) {
  std::mt19937 random(8);
  for (const Policy& policy : policies()) {
    if (chunks_of(policy) == 1) continue;
    for (int trial = 0; trial < 2; ++trial) {
      SCOPED_TRACE(fmt::format("{}, trial {}", policy.name, trial));
      const Profile profile = random_network(random, 14);
      double shortest_s = 0;
      for (const Method method : {Method::uniform, Method::block, Method::antichain})
        for (const Objective objective : objectives) {
          PlanOptions o = options(3, objective);
          o.chunks = 2;
          o.microbatches = 9;
          const Plan plan = plan_network(profile, o, method, policy);
          ASSERT_EQ(plan.stages.size(), 6u);
          for (int s = 0; s < 6; ++s)
            EXPECT_EQ(plan.stages[size_t(s)].ranks,
                      std::vector<int>{position_of_stage(policy.placement, s, 3)});
          const Schedule schedule = make_schedule(profile, plan, policy, 9);
          EXPECT_EQ(plan.step_s, simulate(schedule, plan, profile, o.cluster).step_s);
          EXPECT_LE(plan.lower_bound_s, plan.objective_s());
          const Plan priced = ScheduleChoice{std::string(policy.name)}.judge(profile, plan, o);
          EXPECT_EQ(plan_hash(priced), plan_hash(plan));
          EXPECT_EQ(priced.step_s, plan.step_s);
          EXPECT_EQ(priced.bottleneck_s, plan.bottleneck_s);
          for (size_t s = 0; s < 6; ++s)
            EXPECT_EQ(priced.stages[s].memory_bytes, plan.stages[s].memory_bytes);
          if (objective != Objective::makespan) continue;
          if (method == Method::antichain)
            EXPECT_LE(plan.step_s, shortest_s);
          else
            shortest_s = shortest_s == 0 ? plan.step_s : std::min(shortest_s, plan.step_s);
        }
    }
  }
}

TEST(PlanNetwork, RefusesWhatSeveralStagesARankCannotHave) {
  const Profile profile = chain(8, cost);
  const auto refused = [&](const char* name, PlanOptions o, std::initializer_list<std::string> words) {
    o.chunks = 2;
    expect_error([&] { plan_network(profile, o, Method::antichain, policy(name)); }, words);
  };
  refused("interleaved", options(4, Objective::makespan), {"6 micro-batches on 4 ranks", "--microbatches 8"});
  refused("dualpipe-v", options(4, Objective::compute), {"6 micro-batches on 4 ranks", "--microbatches 8"});
  refused("zb-v", options(5, Objective::compute), {"10 stages", "8 nodes"});
  PlanOptions replicas = options(2, Objective::makespan);
  replicas.replicas.automatic = true;
  refused("zb-v", replicas, {"zb-v has 2 stages a rank", "replicas"});
  PlanOptions small = options(2, Objective::makespan);
  small.cluster = equal_devices(2, {}, 1000);
  refused("zb-v", small, {"stages", "need", "bytes", "has 1000"});
}

// A limit of memory is one of all stages of a rank. Some plan is known to keep it, and the fastest plan
// without a limit does not, so the search has to look for another cut.
TEST(PlanNetwork, SeveralStagesARankAreCutToFitTheMemory) {
  int tight = 0;
  for (const char* name : {"interleaved", "zb-v", "v-half"})
    for (unsigned seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE(fmt::format("{}, seed {}", name, seed));
      std::mt19937 random(seed);
      Profile profile = random_network(random, 16);
      for (ProfileNode& node : profile.nodes)
        if (node.role != Role::input)
          node.cost.param_bytes = 10 * int64_t(random() % 50),
          node.cost.stash_bytes = int64_t(random() % 300);
      PlanOptions o = options(3, Objective::makespan);
      o.chunks = 2;
      o.microbatches = 9;
      const auto fullest = [](const Plan& plan) {
        int64_t most = 0;
        for (int r = 0; r < plan.ranks(); ++r) most = std::max(most, memory_of_rank(plan, r));
        return most;
      };
      const Plan unlimited = plan_network(profile, o, Method::antichain, policy(name));
      int64_t limit = fullest(unlimited);
      double known_s = unlimited.step_s;  // of the plan that has this limit
      for (int trial = 0; trial < 200; ++trial) {
        Plan known = random_plan(random, profile, 6);
        for (int s = 0; s < 6; ++s)
          known.stages[size_t(s)].ranks = {position_of_stage(policy(name).placement, s, 3)};
        known = ScheduleChoice{name}.judge(profile, known, o);
        if (fullest(known) < limit) limit = fullest(known), known_s = known.step_s;
      }
      tight += limit < fullest(unlimited);
      for (const Objective objective : {Objective::makespan, Objective::period}) {
        o.objective = objective;
        o.cluster = equal_devices(3, o.cluster.within_node, limit);
        const Plan plan = plan_network(profile, o, Method::antichain, policy(name));
        EXPECT_LE(fullest(plan), limit);
        EXPECT_LE(plan.step_s, known_s * (1 + 1e-9)) << "it is no slower than the plan that is known to fit";
      }
    }
  EXPECT_GT(tight, 6);
}

// The stages of a rank share what it has beyond their least.
TEST(PlanNetwork, SeveralStagesARankRecomputeWhatMakesThemFit) {
  NodeCost keeps = cost;
  keeps.keeps_output = true;
  for (const char* name : {"interleaved", "zb-v", "auto"})
    for (const Method method : {Method::uniform, Method::antichain}) {
      SCOPED_TRACE(fmt::format("{} by {}", name, name_of(method)));
      Profile profile = chain(12, keeps);
      for (size_t n = 2; n < profile.nodes.size(); ++n)
        profile.nodes[n].cost.stash_bytes = 50 + 20 * int(n % 3);
      PlanOptions o = options(2, Objective::makespan);
      const ScheduleChoice choice{.name = name, .two_stages = true, .by_formula = true};
      o.chunks = choice.planned() ? 1 : 2;
      const Plan unlimited = choice.plan(profile, o, method);
      const auto fullest = [](const Plan& plan) {
        return std::max(memory_of_rank(plan, 0), memory_of_rank(plan, 1));
      };
      o.cluster = equal_devices(2, o.cluster.within_node, fullest(unlimited) * 9 / 10);
      o.recompute = true;
      const Plan plan = choice.plan(profile, o, method);
      EXPECT_LE(fullest(plan), o.cluster.devices[0].memory_bytes);
      EXPECT_GE(plan.step_s, unlimited.step_s * (1 - 1e-9));
      // Others have cuts and orders that need less.
      if (choice.planned() || method != Method::uniform) continue;
      EXPECT_TRUE(std::ranges::any_of(plan.stages, [](const PlanStage& s) { return !s.recomputed.empty(); }));
      o.recompute = false;
      expect_error([&] { choice.plan(profile, o, method); }, {"stages", "need", "bytes"});
    }
}

// Where devices have different speeds, the fastest are used, and at most as many as are asked for.
TEST(PlanNetwork, ChoosesDevicesForSeveralStagesARank) {
  const Profile profile = chain(12, cost);
  PlanOptions o = options(2, Objective::makespan);
  o.chunks = 2;
  o.cluster = equal_devices(4, {});
  o.cluster.devices[1].speed = o.cluster.devices[3].speed = 2;
  const Plan plan = plan_network(profile, o, Method::antichain, policy("zb-v"));
  EXPECT_EQ(plan.device_of(0), 1);
  EXPECT_EQ(plan.device_of(1), 3);
  o.at_most = true;
  o.cluster = one_link({.latency_s = 1000});  // messages cost more than all the rest
  EXPECT_EQ(plan_network(profile, o, Method::antichain, policy("zb-v")).ranks(), 1);
}

// The second stage is the one that does not fit, and the first needs even more on its larger device.
TEST(PlanNetwork, SaysTheSmallestMemoryThatWouldDoForTheSplit) {
  Profile profile = chain(4, cost);
  profile.nodes[2].cost.param_bytes = 1000;
  PlanOptions o = options(2, Objective::compute);
  o.cluster = equal_devices(2, {}, 10'000);
  o.cluster.devices[1].memory_bytes = 500;
  expect_error([&] { plan_network(profile, o, Method::uniform, Policy::one_f_one_b); },
               {"stage 1", "needs 614 bytes", "has 500", "3328 bytes on each device"});
}

}  // namespace
}  // namespace antichain::test
