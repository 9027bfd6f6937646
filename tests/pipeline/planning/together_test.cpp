// Plans for networks in which some nodes sit together are compared with all cuts that keep them so.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "partition/search/antichain_search.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/planning.h"
#include "pipeline/planning/schedule_choice.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/all_plans.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/planning/random_policy.h"

namespace antichain::test {
namespace {

constexpr double no_cut = std::numeric_limits<double>::infinity();

struct Asked {
  Profile profile;
  PlanOptions options;
};

Asked asked_of(unsigned seed, Objective objective, int nodes = 0) {
  std::mt19937 random(seed);
  const int stages = pick(random, 2, 4);
  Asked asked{random_network(random, nodes > 0 ? nodes : pick(random, stages, 8)), {}};
  sit_together(random, asked.profile);
  asked.profile.overhead_s = 0.25 * pick(random, 0, 2);
  for (ProfileNode& node : asked.profile.nodes) node.cost.update_s = 0.25 * pick(random, 0, 4);
  asked.options = {.stages = stages,
                   .cluster = one_link({.bytes_per_s = pick(random, 0, 2) * 200.0, .latency_s = 0.125}),
                   .objective = objective,
                   .microbatches = pick(random, 1, 8),
                   .steps = objective == Objective::period ? Steps::overlapped : Steps::apart};
  return asked;
}

double pace_of(const Asked& asked, const Plan& plan, const Policy& policy) {
  const Pace its = pace(asked.profile, plan, policy, asked.options.microbatches, asked.options.cluster,
                        asked.options.steps);
  return asked.options.objective == Objective::period ? its.period_s : its.step_s;
}

double best_of_all_cuts(const Asked& asked, const Policy& policy) {
  double best_s = no_cut;
  for_each_cut(asked.profile, asked.options.stages, [&](const auto& stages, const auto&) {
    best_s = std::min(best_s, pace_of(asked, plan_of(asked.profile, stages), policy));
  });
  return best_s;
}

void expect_best_of_all_cuts(Objective objective, int cases, double least_share) {
  int compared = 0, best = 0;
  for (unsigned seed = 0; seed < unsigned(cases); ++seed) {
    SCOPED_TRACE(seed);
    const Asked asked = asked_of(seed, objective);
    const Policy policy = some_policy(seed);
    const double least_s = best_of_all_cuts(asked, policy);
    const auto its = [&] { return plan_network(asked.profile, asked.options, Method::antichain, policy); };
    if (least_s == no_cut) {
      expect_error(its, {"because nodes sit together"});
      continue;
    }
    const Plan plan = its();
    EXPECT_NO_THROW(validate(plan, asked.profile));
    EXPECT_NEAR(plan.objective_s(), pace_of(asked, plan, policy), plan.objective_s() * plan_rounding);
    EXPECT_GE(plan.objective_s(), least_s * (1 - plan_rounding));
    EXPECT_LE(plan.lower_bound_s, least_s * (1 + plan_rounding));
    EXPECT_LE(pace_bound_s(asked.profile, asked.options, policy.halves), least_s * (1 + plan_rounding));
    const bool is_best = plan.objective_s() <= least_s * (1 + plan_rounding);
    ++compared, best += is_best;
    if (!policy.halves && objective == Objective::makespan) {
      EXPECT_TRUE(is_best && plan.proved_optimal());
    }
  }
  EXPECT_GT(compared, cases / 2);
  EXPECT_GE(best, least_share * compared);
}

TEST(Together, TheStepIsThatOfTheBestCut) { expect_best_of_all_cuts(Objective::makespan, 240, 0.95); }

TEST(Together, ThePeriodIsMostlyThatOfTheBestCut) { expect_best_of_all_cuts(Objective::period, 120, 0.8); }

// The order of each cut is searched, too.
TEST(Together, AnOrderAndACutAreNoSlowerThanTheBestCutForIt) {
  int compared = 0, best = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Asked asked = asked_of(seed, seed % 2 ? Objective::period : Objective::makespan, 4);
    const ScheduleChoice choice{.name = std::string(planned_order)};
    double least_s = no_cut;
    for_each_cut(asked.profile, asked.options.stages, [&](const auto& stages, const auto&) {
      const Plan cut = plan_of(asked.profile, stages);
      least_s = std::min(least_s, choice.judge(asked.profile, cut, asked.options).pace_s());
    });
    if (least_s == no_cut) continue;
    const Plan plan = choice.plan(asked.profile, asked.options, Method::antichain);
    EXPECT_NO_THROW(validate(plan, asked.profile));
    EXPECT_LE(plan.lower_bound_s, least_s * (1 + plan_rounding));
    ++compared, best += plan.pace_s() <= least_s * (1 + plan_rounding);
  }
  EXPECT_GT(compared, 4);
  EXPECT_GE(best, compared - 1);
}

TEST(Together, SeveralStagesARankKeepThem) {
  int compared = 0, best = 0;
  for (unsigned seed = 0; seed < 6; ++seed)
    for (const char* name : {"interleaved", "zb-v"}) {
      SCOPED_TRACE(seed);
      Asked asked = asked_of(seed, Objective::makespan, 7);
      asked.options.stages = 2, asked.options.chunks = 2, asked.options.microbatches = 4;
      double least_s = no_cut;
      for_each_cut(asked.profile, 4, [&](const auto& stages, const auto&) {
        const Plan cut = on_its_ranks(plan_of(asked.profile, stages), asked.options, policy(name));
        least_s = std::min(least_s, pace_of(asked, cut, policy(name)));
      });
      const auto its = [&] {
        return ScheduleChoice{.name = name}.plan(asked.profile, asked.options, Method::antichain);
      };
      if (least_s == no_cut) {
        expect_error(its, {"4 stages were asked for", "because nodes sit together"});
        continue;
      }
      const Plan plan = its();
      EXPECT_NO_THROW(validate(plan, asked.profile));
      EXPECT_LE(plan.lower_bound_s, least_s * (1 + plan_rounding));
      EXPECT_GE(plan.step_s, least_s * (1 - plan_rounding));
      ++compared, best += plan.step_s <= least_s * (1 + plan_rounding);
    }
  EXPECT_GT(compared, 5);
  EXPECT_GE(best, 0.6 * compared);
}

TEST(Together, ReplicasAndFewerDevicesKeepThem) {
  int compared = 0, best = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Asked asked = asked_of(seed, Objective::makespan, 6);
    asked.options.stages = 3, asked.options.microbatches = 4;
    const bool fewer = seed % 2;
    (fewer ? asked.options.at_most : asked.options.replicas.automatic) = true;
    double least_s = no_cut;
    for (int stages = 1; stages <= 3; ++stages)
      for_each_cut(asked.profile, stages, [&](const auto& cut, const auto&) {
        std::vector<int> replicas(size_t(stages), 1);
        for (int crowded = 0; crowded < (fewer || stages == 3 ? 1 : stages); ++crowded) {
          std::ranges::fill(replicas, 1);
          if (!fewer) replicas[size_t(crowded)] += 3 - stages;
          const Plan plan = replicated(plan_of(asked.profile, cut), replicas);
          least_s = std::min(least_s, pace_of(asked, plan, Policy::one_f_one_b));
        }
      });
    const Plan plan = plan_network(asked.profile, asked.options, Method::antichain, Policy::one_f_one_b);
    EXPECT_NO_THROW(validate(plan, asked.profile));
    EXPECT_LE(plan.lower_bound_s, least_s * (1 + plan_rounding));
    EXPECT_GE(plan.step_s, least_s * (1 - plan_rounding));
    const bool is_best = plan.step_s <= least_s * (1 + plan_rounding);
    if (fewer) {
      EXPECT_TRUE(is_best && plan.proved_optimal());
    }
    ++compared, best += is_best;
  }
  EXPECT_GE(best, 0.9 * compared);
}

TEST(Together, OtherMethodsKeepThemOrRefuse) {
  int kept = 0, refused = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Asked asked = asked_of(seed, seed % 2 ? Objective::compute : Objective::makespan, 8);
    asked.options.microbatches = 8;
    for (ProfileNode& node : asked.profile.nodes) node.cost.flops = node.cost.forward_s;
    for (const Method method : methods()) {
      if (method == Method::antichain || method == Method::handsplit) continue;
      try {
        validate(plan_network(asked.profile, asked.options, method, Policy::one_f_one_b), asked.profile);
        ++kept;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("sit together"), std::string::npos) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(refused, 20);
}

// n2 and n4 sit together, and so do n3 and n5: all four are on a cycle.
TEST(Together, ACycleOfSetsIsOne) {
  Profile profile = chain(6);
  profile.together = {{3, 5}, {4, 6}};
  PlanOptions options{.stages = 3, .objective = Objective::makespan, .microbatches = 4};
  const Plan plan = plan_network(profile, options, Method::antichain, Policy::one_f_one_b);
  EXPECT_EQ(plan.stages[1].nodes, (std::vector<int>{3, 4, 5, 6}));
  EXPECT_TRUE(plan.proved_optimal());
  options.stages = 4;
  for (const Objective objective : {Objective::compute, Objective::load, Objective::makespan}) {
    options.objective = objective;
    expect_error([&] { plan_network(profile, options, Method::antichain, Policy::one_f_one_b); },
                 {"4 stages were asked for, but test can be cut into 3 stages at most",
                  "because nodes sit together: n2 and n3 with 2 more"});
  }
}

TEST(Together, ANetworkOfOneSetCannotBeCut) {
  Profile profile = chain(3);
  profile.together = {{2, 3, 4}};
  PlanOptions options{.stages = 2, .objective = Objective::makespan, .microbatches = 4};
  for (const char* schedule : {"1f1b", "zb-h1", "auto"})
    expect_error([&] { ScheduleChoice{.name = schedule}.plan(profile, options, Method::antichain); },
                 {"2 stages were asked for, but test can be cut into 1 stage at most",
                  "because nodes sit together: n1 and n2 with 1 more"});
  options.replicas.automatic = true;
  const Plan plan = plan_network(profile, options, Method::antichain, Policy::one_f_one_b);
  EXPECT_EQ(plan.stages.size(), 1u);
  EXPECT_EQ(plan.ranks(), 2);
  options.stages = 5;
  expect_error([&] { plan_network(profile, options, Method::antichain, Policy::one_f_one_b); },
               {"5 devices were asked for", "each on a device per micro-batch"});
}

// Two nodes share a weight, of which their stage holds one copy.
TEST(Together, AWeightThatASetSharesIsHeldOnce) {
  Profile profile = chain(4);
  for (ProfileNode& node : profile.nodes) node.cost.param_bytes = node.role == Role::input ? 0 : 100;
  for (const int n : {3, 4})
    profile.nodes[size_t(n)].shared = {
        {.weight = "w", .first = 3, .param = 0, .bytes = 100, .slot_bytes = 100}};
  profile.together = {{3, 4}};
  PlanOptions options{.stages = 3, .objective = Objective::compute, .microbatches = 1};
  const Plan plan = plan_network(profile, options, Method::antichain, Policy::one_f_one_b);
  options.cluster = equal_devices(3, {}, plan.stages[1].memory_bytes);
  EXPECT_EQ(AntichainSearch(profile, options).least_memory().bytes, plan.stages[1].memory_bytes);
  EXPECT_NO_THROW(plan_network(profile, options, Method::antichain, Policy::one_f_one_b));
}

// A set has two outputs: what the next node reads, which is all that crosses behind it, and what that node's
// successor reads besides.
TEST(Together, EachOutputOfASetCrossesAsFarAsItIsRead) {
  Profile profile = empty_network();
  const auto add = [&](std::vector<int> inputs, int64_t bytes) {
    profile.nodes.push_back(node(fmt::format("n{}", profile.nodes.size()), Role::compute, std::move(inputs),
                                 true, {.forward_s = 1, .output_bytes = bytes}));
  };
  add({}, 1000), add({0}, 10), add({0}, 10), add({1, 2}, 1);
  profile.together = {{0, 1}};
  const AntichainSearch search(profile, {.stages = 2, .objective = Objective::compute});
  std::vector<int64_t> crossing;
  for (int state = 0; state < search.whole()->states(); ++state)
    crossing.push_back(search.whole()->crossing_bytes(state));
  EXPECT_EQ(crossing, (std::vector<int64_t>{0, 1010, 20, 0}));
}

}  // namespace
}  // namespace antichain::test
