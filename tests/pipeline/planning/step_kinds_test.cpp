// Searches for a step on devices of several kinds, each with a profile of its own, are compared with all cuts
// on all devices. What a plan takes is simulated as that of one profile, whose nodes take what they take
// where the plan has them.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

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

constexpr double nothing_found = std::numeric_limits<double>::infinity();

Profile network_with_updates(std::mt19937& random, int nodes) {
  Profile profile = random_network(random, nodes);
  profile.overhead_s = 0.25 * pick(random, 0, 2);
  for (ProfileNode& node : profile.nodes) node.cost.update_s = 0.25 * pick(random, 0, 4);
  return profile;
}

// Returns devices of the network's own times and of another kind, which is faster at some nodes and slower at
// others, and bars one or none.
Cluster two_kinds(std::mt19937& random, const Profile& own, int devices) {
  auto other = std::make_shared<Profile>(own);
  other->overhead_s = 0.25 * pick(random, 0, 2);
  const int barred = pick(random, 2, int(own.nodes.size()) + 2);
  for (int n = 2; n < int(own.nodes.size()); ++n) {
    ProfileNode& node = other->nodes[size_t(n)];
    node.barred = n == barred;
    for (double NodeCost::*const time : {&NodeCost::forward_s, &NodeCost::backward_input_s,
                                         &NodeCost::backward_weight_s, &NodeCost::update_s})
      node.cost.*time *= 0.25 * pick(random, 1, 12);
  }
  Cluster cluster =
      one_link({.bytes_per_s = pick(random, 0, 2) * 200.0, .latency_s = 0.125 * double(random() % 2)});
  cluster.between_nodes = {.bytes_per_s = 150, .latency_s = 0.5};
  cluster.profiles = {{"other", "other.json", other}};
  for (int d = 0; d < devices; ++d) cluster.devices.push_back({.profile = d % 2 - 1});
  if (random() % 3 == 0) cluster.devices.back().speed = 0.5;
  if (random() % 3 == 0) cluster.devices.back().node = 1;
  return cluster;
}

Cluster without_kinds(Cluster cluster) {
  cluster.profiles.clear();
  for (Device& device : cluster.devices) device.profile = -1, device.speed = 1;
  return cluster;
}

// Returns the profile in which every node takes what it takes on the plan's devices, and the first node of a
// stage the overhead as well; nothing where a node is barred.
std::optional<Profile> as_placed(const Profile& own, const Plan& plan, const Cluster& cluster) {
  Profile placed = own;
  placed.overhead_s = 0;
  for (const PlanStage& stage : plan.stages) {
    const Device& device = cluster.device(plan.device_of(stage.ranks[0]));
    const Profile& times = cluster.profile(device.profile, own);
    for (const int n : stage.nodes) {
      const NodeCost& cost = times.nodes[size_t(n)].cost;
      const double more_s = n == stage.nodes.front() ? times.overhead_s : 0;
      if (times.nodes[size_t(n)].barred) return {};
      NodeCost& its = placed.nodes[size_t(n)].cost;
      its.forward_s = (cost.forward_s + more_s) / device.speed;
      its.backward_input_s = (cost.backward_input_s + more_s) / device.speed;
      its.backward_weight_s = cost.backward_weight_s / device.speed;
      its.backward_parted_s = more_s / device.speed;
      its.update_s = cost.update_s / device.speed;
    }
  }
  return placed;
}

double placed_pace_s(const Profile& own, const Plan& plan, const Policy& policy, const PlanOptions& options) {
  const std::optional<Profile> placed = as_placed(own, plan, options.cluster);
  if (!placed) return nothing_found;
  const Pace its =
      pace(*placed, plan, policy, options.microbatches, without_kinds(options.cluster), options.steps);
  return options.objective == Objective::period ? its.period_s : its.step_s;
}

// Returns the best pace of every cut, whichever devices have its stages.
double best_placed_s(const Profile& profile, const PlanOptions& options, const Policy& policy) {
  double best_s = nothing_found;
  for_each_cut(profile, options.stages, [&](const std::vector<std::vector<int>>& stages, const auto&) {
    Plan plan = plan_of(profile, stages);
    std::vector<int> devices(options.cluster.devices.size());
    std::iota(devices.begin(), devices.end(), 0);
    do {  // those beyond the stages are not used
      for (size_t s = 0; s < stages.size(); ++s) plan.stages[s].devices = {devices[s]};
      best_s = std::min(best_s, placed_pace_s(profile, plan, policy, options));
    } while (std::ranges::next_permutation(devices).found);
  });
  return best_s;
}

struct OfKinds {
  Profile profile;
  PlanOptions options;
};

OfKinds of_kinds(std::mt19937& random, Objective objective) {
  const int stages = pick(random, 2, 4);
  OfKinds of{network_with_updates(random, pick(random, stages, 5)), {}};
  if (random() % 3 == 0) sit_together(random, of.profile, stages);
  of.options = {.stages = stages,
                .cluster = two_kinds(random, of.profile, stages + (stages < 4 ? pick(random, 0, 1) : 0)),
                .objective = objective,
                .microbatches = pick(random, 1, 6),
                .steps = objective == Objective::period ? Steps::overlapped : Steps::apart};
  return of;
}

TEST(StepKinds, AStageTakesWhatItsNodesTakeOnItsDevice) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const OfKinds of = of_kinds(random, seed % 2 ? Objective::period : Objective::makespan);
    const Policy policy = seed % 3 ? random_policy(seed) : Policy::one_f_one_b;
    const Plan plan = random_plan(random, of.profile, of.options.stages);
    const double placed_s = placed_pace_s(of.profile, plan, policy, of.options);
    const auto its = [&] {
      return pace(of.profile, plan, policy, of.options.microbatches, of.options.cluster, of.options.steps);
    };
    if (placed_s == nothing_found) {
      expect_error(its, {"the plan puts node ", "whose profile bars it"});
      continue;
    }
    EXPECT_NEAR(its().period_s, placed_s, placed_s * plan_rounding);
    EXPECT_LE(pace_bound_s(of.profile, of.options, policy.halves), placed_s * (1 + plan_rounding));
  }
}

void expect_best_of_all(Objective objective, int cases, int least_best) {
  int best = 0;
  for (unsigned seed = 0; seed < unsigned(cases); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const OfKinds of = of_kinds(random, objective);
    const Policy policy = some_policy(seed);
    const double least_s = best_placed_s(of.profile, of.options, policy);
    const Plan plan = plan_network(of.profile, of.options, Method::antichain, policy);
    EXPECT_NO_THROW(validate(plan, of.profile));
    EXPECT_NEAR(plan.objective_s(), placed_pace_s(of.profile, plan, policy, of.options),
                plan.objective_s() * plan_rounding);
    EXPECT_GE(plan.objective_s(), least_s * (1 - plan_rounding));
    EXPECT_LE(plan.lower_bound_s, least_s * (1 + plan_rounding));
    const bool is_best = plan.objective_s() <= least_s * (1 + plan_rounding);
    best += is_best;
    if (!policy.halves && objective == Objective::makespan) {
      EXPECT_TRUE(is_best && plan.proved_optimal());
    }
  }
  EXPECT_GE(best, least_best);
}

TEST(StepKinds, TheStepIsTheBestOfAllCutsOnAllDevices) { expect_best_of_all(Objective::makespan, 100, 90); }

TEST(StepKinds, ThePeriodIsMostlyTheBestOfAllCutsOnAllDevices) {
  expect_best_of_all(Objective::period, 60, 50);
}

// Returns the best pace of every cut on whichever devices, with every choice of what is recomputed, of those
// that fit by the formula.
double best_recomputing_s(const Profile& profile, const PlanOptions& options, const Policy& policy) {
  PlanOptions by = options;
  by.in_flight = policy.in_flight_on(options.stages, 1, options.microbatches);
  std::vector<int> may;
  for (int n = 0; n < int(profile.nodes.size()); ++n)
    if (profile.nodes[size_t(n)].role == Role::compute) may.push_back(n);
  double best_s = nothing_found;
  for_each_cut(profile, options.stages, [&](const auto& stages, const std::vector<int>& stage_of) {
    std::vector<int> devices(options.cluster.devices.size());
    std::iota(devices.begin(), devices.end(), 0);
    do {
      for (unsigned again = 0; again < 1u << may.size(); ++again) {
        Plan plan = plan_of(profile, stages);
        for (size_t s = 0; s < stages.size(); ++s) plan.stages[s].devices = {devices[s]};
        for (size_t i = 0; i < may.size(); ++i)
          if (again >> i & 1) plan.stages[size_t(stage_of[size_t(may[i])])].recomputed.push_back(may[i]);
        if (rank_that_does_not_fit(finish_plan(profile, by, plan.stages, "", 0), options.cluster) < 0)
          best_s = std::min(best_s, placed_pace_s(profile, plan, policy, options));
      }
    } while (std::ranges::next_permutation(devices).found);
  });
  return best_s;
}

// A stage recomputes what takes least time where it is.
TEST(StepKinds, WhatIsRecomputedTakesWhatItTakesOnItsDevice) {
  int recomputing = 0, none = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int stages = pick(random, 1, 2);
    Profile profile = uneven_network(random, seed % 2 == 0, 4);
    if (seed % 3 == 0) sit_together(random, profile, stages);
    PlanOptions options{.stages = stages,
                        .cluster = two_kinds(random, profile, stages + int(seed % 2)),
                        .objective = Objective::makespan,
                        .microbatches = pick(random, 2, 6),
                        .recompute = true};
    Profile other = *options.cluster.profiles[0].profile;
    other.overhead_s = 0;  // as_placed has it in a node's forward
    options.cluster.profiles[0].profile = std::make_shared<Profile>(other);
    const Plan free = plan_network(profile, options, Method::antichain, Policy::gpipe);
    for (Device& device : options.cluster.devices)
      device.memory_bytes = std::max<int64_t>(1, memory_of_rank(free, 0) * pick(random, 30, 90) / 100);
    const double least_s = best_recomputing_s(profile, options, Policy::gpipe);
    const auto its = [&] { return plan_network(profile, options, Method::antichain, Policy::gpipe); };
    if (least_s == nothing_found) {
      EXPECT_THROW(its(), Error);
      ++none;
      continue;
    }
    const Plan plan = its();
    EXPECT_NO_THROW(validate(plan, profile));
    EXPECT_LT(rank_that_does_not_fit(plan, options.cluster), 0);
    EXPECT_NEAR(plan.step_s, placed_pace_s(profile, plan, Policy::gpipe, options), 1e-9);
    EXPECT_NEAR(plan.step_s, least_s, 1e-9);
    EXPECT_TRUE(plan.proved_optimal());
    recomputing +=
        std::ranges::any_of(plan.stages, [](const PlanStage& of) { return !of.recomputed.empty(); });
  }
  EXPECT_GT(recomputing, 10);
  EXPECT_GT(none, 0);
}

// Twice the times are half the speed.
TEST(StepKinds, AreAsGoodAsSpeedsThatSayTheSame) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Profile own = network_with_updates(random, 9);
    auto slow = std::make_shared<Profile>(own);
    slow->overhead_s *= 2;
    for (ProfileNode& node : slow->nodes)
      for (double NodeCost::*const time : {&NodeCost::forward_s, &NodeCost::backward_input_s,
                                           &NodeCost::backward_weight_s, &NodeCost::update_s})
        node.cost.*time *= 2;
    PlanOptions by_speed{.stages = 4, .objective = Objective::makespan, .microbatches = 6};
    by_speed.cluster.devices = {{}, {.speed = 0.5}, {}, {.speed = 0.5}};
    PlanOptions by_kind = by_speed;
    by_kind.cluster.profiles = {{"slow", "slow.json", slow}};
    by_kind.cluster.devices = {{}, {.profile = 0}, {}, {.profile = 0}};
    const auto step_s = [&](const PlanOptions& options) {
      const Plan plan = plan_network(own, options, Method::antichain, Policy::one_f_one_b);
      EXPECT_TRUE(plan.proved_optimal());
      return plan.step_s;
    };
    EXPECT_NEAR(step_s(by_kind), step_s(by_speed), step_s(by_speed) * plan_rounding);
  }
}

TEST(StepKinds, AnOrderThatIsSearchedIsNoSlowerThanNamedOnes) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    OfKinds of = of_kinds(random, Objective::makespan);
    of.profile = network_with_updates(random, 10);
    of.options.cluster = two_kinds(random, of.profile, of.options.stages);
    const auto plan_of = [&](const std::string& schedule) {
      return ScheduleChoice{.name = schedule, .two_stages = false}.plan(of.profile, of.options,
                                                                        Method::antichain);
    };
    const Plan automatic = plan_of(std::string(planned_order));
    EXPECT_TRUE(as_placed(of.profile, automatic, of.options.cluster));
    EXPECT_LE(automatic.lower_bound_s, automatic.step_s);
    for (const char* name : {"1f1b", "gpipe", "zb-h1"})
      EXPECT_LE(automatic.step_s, plan_of(name).step_s * (1 + plan_rounding)) << name;
  }
}

// Replicas of a stage are of one kind.
TEST(StepKinds, ReplicasKeepTheBound) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    OfKinds of = of_kinds(random, Objective::makespan);
    of.options.stages = 4, of.options.microbatches = 8;
    of.options.cluster = two_kinds(random, of.profile, 4);
    of.options.replicas.automatic = true;
    const Plan plan = plan_network(of.profile, of.options, Method::antichain, Policy::one_f_one_b);
    const Schedule schedule = make_schedule(of.profile, plan, Policy::one_f_one_b, 8);
    EXPECT_EQ(plan.step_s, simulate(schedule, plan, of.profile, of.options.cluster).step_s);
    EXPECT_LE(plan.lower_bound_s, plan.step_s);
  }
}

TEST(StepKinds, ANodeThatEveryDeviceBarsHasNoPlan) {
  std::mt19937 random(1);
  OfKinds of = of_kinds(random, Objective::makespan);
  Profile barring = *of.options.cluster.profiles[0].profile;
  barring.nodes[2].barred = true;
  of.options.cluster.profiles[0].profile = std::make_shared<Profile>(barring);
  for (Device& device : of.options.cluster.devices) device.profile = 0;
  expect_error([&] { plan_network(of.profile, of.options, Method::antichain, Policy::one_f_one_b); },
               {"so that no node is on a device on which it is barred"});
}

TEST(StepKinds, StagesThatShareARankAreRefused) {
  std::mt19937 random(1);
  OfKinds of = of_kinds(random, Objective::makespan);
  of.options.chunks = 2;
  expect_error([&] { plan_network(of.profile, of.options, Method::antichain, policy("zb-v")); },
               {"a schedule of 2 stages a rank has ranks in a fixed order"});
}

}  // namespace
}  // namespace antichain::test
