// The makespan search is compared with every other way to find a plan, and its bound with every plan.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>

#include "framework/json.h"
#include "partition/planners/planner.h"
#include "partition/profile/read_profile.h"
#include "partition/search/antichain_search.h"
#include "pipeline/planning/cut_scorer.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/planning.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/planning/random_policy.h"

namespace antichain::test {
namespace {

Profile small_network(std::mt19937& random, int nodes) {
  Profile profile = random_network(random, nodes);
  for (ProfileNode& node : profile.nodes) {
    node.cost.param_bytes = pick(random, 0, 200), node.cost.stash_bytes = pick(random, 0, 50);
    node.cost.update_s = 0.1 * pick(random, 0, 4);
    node.cost.flops = node.cost.forward_s;
  }
  profile.overhead_s = 0.1 * pick(random, 0, 2);
  return profile;
}

PlanOptions options(int stages, const Link& link, int microbatches) {
  return {.stages = stages,
          .cluster = one_link(link),
          .objective = Objective::makespan,
          .microbatches = microbatches};
}

int work_nodes(const Profile& profile) {
  return int(std::count_if(profile.nodes.begin(), profile.nodes.end(),
                           [](const ProfileNode& node) { return node.role != Role::input; }));
}

// Returns the shortest step over all ways to cut into so many stages, and how many ways there are.
struct Exhaustive {
  double step_s = std::numeric_limits<double>::infinity();
  int64_t plans = 0;
};
Exhaustive try_all(const Profile& profile, const PlanOptions& asked, Policy policy) {
  PlanOptions o = asked;
  o.objective = Objective::compute;
  AntichainSearch search(profile, o);
  const Solution some = search.best();
  CutScorer score(profile, o, policy, *some.dag, *some.placements, search.fitter());
  Exhaustive all;
  Cuts cuts = some.cuts;
  const size_t last = cuts.states.size() - 1;
  const std::function<void(size_t)> choose = [&](size_t boundary) {
    if (boundary == last) {
      if (const auto s = score(cuts)) all.step_s = std::min(all.step_s, s->step_s), ++all.plans;
      return;
    }
    for (int state = cuts.states[boundary - 1] + 1; state < some.dag->full(); ++state)
      if (some.dag->inside(cuts.states[boundary - 1], state))
        cuts.states[boundary] = state, choose(boundary + 1);
  };
  choose(1);
  return all;
}

Profile random_chain(std::mt19937& random, int nodes) {
  Profile profile = chain(nodes);
  for (ProfileNode& node : profile.nodes)
    if (node.role != Role::input)
      node.cost = {.forward_s = double(pick(random, 1, 9)),
                   .backward_input_s = double(pick(random, 1, 9)),
                   .output_bytes = pick(random, 1, 1000)};
  return profile;
}

TEST(Makespan, IsTheBestOfAllCutsOfSmallNetworks) {
  std::mt19937 random(11);
  int best = 0, proved = 0;
  constexpr int cases = 120;
  for (int trial = 0; trial < cases; ++trial) {
    const int nodes = pick(random, 4, 9), stages = pick(random, 2, 4);
    const Profile profile = trial % 2 ? random_chain(random, nodes + 4) : small_network(random, nodes);
    const Link link = trial % 3 ? Link{.bytes_per_s = 100.0 * pick(random, 1, 5), .latency_s = 0.1} : Link{};
    const PlanOptions o = options(stages, link, pick(random, 1, 12));
    const Policy policy = trial % 4 ? Policy::one_f_one_b : Policy::gpipe;
    const Plan plan = plan_network(profile, o, Method::antichain, policy);
    const Exhaustive all = try_all(profile, o, policy);
    ASSERT_GT(all.plans, 0);
    EXPECT_GE(plan.step_s, all.step_s * (1 - plan_rounding)) << "trial " << trial;
    EXPECT_LE(plan.lower_bound_s, all.step_s * (1 + plan_rounding)) << "trial " << trial;
    best += plan.step_s <= all.step_s * (1 + plan_rounding);
    proved += plan.proved_optimal();
  }
  EXPECT_EQ(best, cases);
  EXPECT_EQ(proved, cases);  // so few cuts are all tried, but for those that a bound rules out
}

TEST(Makespan, IsNeverLongerThanThatOfAnyOtherMethod) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 8; ++trial) {
    const Profile profile = small_network(random, pick(random, 6, 14));
    const Link link = trial % 3 ? Link{.bytes_per_s = 100.0 * pick(random, 1, 5), .latency_s = 0.1} : Link{};
    PlanOptions o = options(pick(random, 2, 4), link, pick(random, 4, 12));
    o.replicas.automatic = trial % 2;
    const Plan plan = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
    validate(plan, profile);
    EXPECT_EQ(plan.ranks(), o.stages);
    EXPECT_EQ(plan.method, "antichain");
    EXPECT_EQ(plan.objective, Objective::makespan);
    EXPECT_GE(plan.gap(), 0);
    const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, o.microbatches);
    EXPECT_EQ(plan.step_s, simulate(schedule, plan, profile, o.cluster).step_s);
    for (const Method method : methods())
      for (const Objective objective :
           {Objective::compute, Objective::compute_or_transfer, Objective::makespan}) {
        if (method == Method::handsplit) continue;  // needs cuts
        PlanOptions other = o;
        other.objective = objective;
        if (method != Method::antichain && method != Method::pipedream) other.replicas = {};
        if (method == Method::data_parallel && o.replicas.off()) continue;
        EXPECT_LE(plan.step_s,
                  plan_network(profile, other, method, Policy::one_f_one_b).step_s * (1 + plan_rounding))
            << name_of(method) << " for " << name_of(objective) << ", trial " << trial;
      }
  }
}

TEST(Makespan, IsTheSameEveryTime) {
  std::mt19937 random(13);
  const Profile profile = small_network(random, 20);
  PlanOptions o = options(4, {.bytes_per_s = 300, .latency_s = 0.1}, 8);
  o.replicas.automatic = true;
  const Plan a = plan_network(profile, o, Method::antichain, Policy::one_f_one_b),
             b = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
  EXPECT_EQ(plan_hash(a), plan_hash(b));
  EXPECT_EQ(a.step_s, b.step_s);
}

TEST(Makespan, OfAtMostSoManyStagesIsNoLongerThanOfAnyNumber) {
  std::mt19937 random(14);
  for (int trial = 0; trial < 6; ++trial) {
    const Profile profile = small_network(random, 8);
    PlanOptions o = options(4, {.bytes_per_s = 40.0 * pick(random, 1, 5), .latency_s = 0.5}, 3);
    o.at_most = true;
    const Plan plan = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
    EXPECT_LE(int(plan.stages.size()), 4);
    o.at_most = false;
    for (o.stages = 1; o.stages <= 4; ++o.stages)
      EXPECT_LE(plan.step_s, plan_network(profile, o, Method::antichain, Policy::one_f_one_b).step_s *
                                 (1 + plan_rounding));
  }
}

// 4 devices at no cost for an all-reduce: nothing beats data parallelism. And where weights are heavy,
// something does.
TEST(Makespan, TakesReplicasWhereTheyPay) {
  Profile profile = chain(6, {.forward_s = 1, .backward_input_s = 2, .output_bytes = 1, .param_bytes = 100});
  PlanOptions o = options(4, {.bytes_per_s = 1e9}, 8);
  o.replicas.automatic = true;
  const Plan light = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
  EXPECT_NEAR(light.step_s, 6 * 3 * 8 / 4., 1e-5);  // an all-reduce takes less than a microsecond
  for (ProfileNode& node : profile.nodes) node.cost.param_bytes = 100'000'000'000;
  const Plan heavy = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
  EXPECT_EQ(heavy.stages.size(), 4u);
}

// 5 devices and 3 nodes, but 2 micro-batches: 5 replicas of one stage would have 3 without any.
TEST(Makespan, GivesEveryReplicaAMicrobatch) {
  const Profile profile = chain(3);
  PlanOptions o = options(5, {}, 2);
  o.replicas.automatic = true;
  const Plan plan = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
  for (const PlanStage& stage : plan.stages) EXPECT_LE(stage.ranks.size(), 2u);
  o.stages = 7;
  expect_error([&] { plan_network(profile, o, Method::antichain, Policy::one_f_one_b); },
               {"7 devices", "at most 2 devices: one per micro-batch"});
}

TEST(Makespan, KeepsToTheMemory) {
  std::mt19937 random(15);
  int limited = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const Profile profile = small_network(random, 10);
    PlanOptions o = options(3, {.bytes_per_s = 300}, 6);
    const Plan free = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
    int64_t most = 0;
    for (const PlanStage& stage : free.stages) most = std::max(most, stage.memory_bytes);
    o.cluster = equal_devices(3, {.bytes_per_s = 300}, most - 1);  // so that plan does not fit any more
    try {
      const Plan plan = plan_network(profile, o, Method::antichain, Policy::one_f_one_b);
      for (const PlanStage& stage : plan.stages) EXPECT_LT(stage.memory_bytes, most);
      EXPECT_GE(plan.step_s, free.lower_bound_s);
      ++limited;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("does not fit the memory"), std::string::npos);
    }
  }
  EXPECT_GE(limited, 5);  // mostly, another plan does fit
}

// Any plan on any of the cluster's devices: the bound is below its simulated step.
TEST(MakespanBound, HoldsForEveryPlan) {
  std::mt19937 random(16);
  double closest = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const Profile profile = small_network(random, pick(random, 4, 10));
    const int M = pick(random, 4, 14), stages = pick(random, 1, std::min(4, work_nodes(profile)));
    Plan plan = random_plan(random, profile, stages);
    std::vector<int> replicas(size_t(stages), 1);
    if (trial % 2)
      for (int& r : replicas) r = pick(random, 1, 3);
    const int devices = std::accumulate(replicas.begin(), replicas.end(), 0);
    plan = replicated(std::move(plan), replicas);
    PlanOptions o = options(stages, {.bytes_per_s = 50.0 * pick(random, 0, 8), .latency_s = 0.1}, M);
    if (trial % 3 == 0)
      for (int d = 0; d < devices; ++d)
        o.cluster.devices.push_back({.speed = 0.25 * pick(random, 1, 8), .node = pick(random, 0, 1)});
    o.cluster.between_nodes = {.bytes_per_s = 20, .latency_s = 1};
    if (trial % 4 == 1) o.replicas.of_stage = replicas;
    if (trial % 4 == 3) o.replicas.automatic = true, o.stages = devices;
    const Policy policy = trial % 5 == 0   ? Policy::gpipe
                          : trial % 5 == 1 ? random_policy(unsigned(trial))
                                           : Policy::one_f_one_b;
    const double bound = pace_bound_s(profile, o, policy.halves),
                 step = step_s(profile, plan, policy, M, o.cluster);
    EXPECT_LE(bound, step) << "trial " << trial;
    EXPECT_GT(bound, 0);
    closest = std::max(closest, bound / step);
  }
  EXPECT_GT(closest, 0.999);  // some are met: those of one stage
}

TEST(MakespanBound, IsTheStepOfASingleDevice) {
  Profile profile = chain(5, {.forward_s = 0.1, .backward_input_s = 0.2, .update_s = 0.3});
  profile.overhead_s = 0.01;
  const Plan plan = plan_network(profile, options(1, {}, 7), Method::antichain, Policy::one_f_one_b);
  EXPECT_EQ(plan.lower_bound_s, plan.step_s);
  EXPECT_TRUE(plan.proved_optimal());
}

// Forward 1, 1, 1; the loss's path back is 2 + 2 + 2, then the first node's update of 5.
TEST(MakespanBound, CriticalPathByHand) {
  Profile profile = chain(3, {.forward_s = 1, .backward_input_s = 2});
  profile.nodes[2].cost.update_s = 5;
  profile.overhead_s = 0.5;
  EXPECT_DOUBLE_EQ(node_bound_s(profile, 1, false, Objective::makespan), 3 + 6 + 5 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(node_bound_s(least_times(profile, {.devices = {{.speed = 2}, {.speed = 1}}}), 1, false,
                                Objective::makespan),
                   7.5);
  profile.nodes[2].needs_gradient = false;  // then its own backward waits for nothing, and 3 + 4 + 1 is less
  EXPECT_DOUBLE_EQ(node_bound_s(profile, 1, false, Objective::makespan), 1 + 2 + 5 + 1);
}

// Where backwards are parted, a gradient goes on after 2 of a node's 2 + 3, and the first node does both.
TEST(MakespanBound, CriticalPathOfHalvesByHand) {
  const Profile profile = chain(3, {.forward_s = 1, .backward_input_s = 2, .backward_weight_s = 3});
  EXPECT_DOUBLE_EQ(node_bound_s(profile, 1, false, Objective::makespan), 3 + 15);
  EXPECT_DOUBLE_EQ(node_bound_s(profile, 1, true, Objective::makespan), 3 + 6 + 3);
}

// Eight forwards of 10 come one after the other, and the last micro-batch needs 4 to the loss and back, then
// 0.1 twice. Where the loss has the long forwards, 2 of others come before them, and 2 after.
TEST(MakespanBound, LastMicrobatchOfALongNodeByHand) {
  Profile profile = chain(3, {.forward_s = 1, .backward_input_s = 1});
  profile.nodes[2].cost = {.forward_s = 10, .backward_input_s = 0.1, .backward_weight_s = 0.1};
  for (const Objective objective : {Objective::period, Objective::makespan})
    EXPECT_DOUBLE_EQ(node_bound_s(profile, 8, true, objective), 80 + 4 + 0.2);
  std::swap(profile.nodes[2].cost, profile.nodes[4].cost);
  EXPECT_DOUBLE_EQ(node_bound_s(profile, 8, true, Objective::period), 81.6);
  EXPECT_DOUBLE_EQ(node_bound_s(profile, 8, true, Objective::makespan), 2 + 80.8 + 2);
}

// A search for orders with halves finds a plan, and claims no proof that trying all plans would refute.
TEST(Makespan, OfOrdersWithHalvesIsNotCalledBetterThanItIs) {
  std::mt19937 random(23);
  int best = 0;
  for (unsigned trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    const Profile profile = small_network(random, pick(random, 4, 7));
    const PlanOptions o = options(pick(random, 2, std::min(3, work_nodes(profile))), {}, 5);
    const Policy policy = random_policy(trial);
    const Plan plan = plan_network(profile, o, Method::antichain, policy);
    const Exhaustive all = try_all(profile, o, policy);
    EXPECT_GE(plan.step_s, all.step_s * (1 - plan_rounding));
    EXPECT_LE(plan.lower_bound_s, all.step_s * (1 + plan_rounding));
    best += plan.step_s <= all.step_s * (1 + plan_rounding);
  }
  EXPECT_GE(best, 30);
}

// All 1,330 ways to cut AlexNet in four, as published with PipeDream.
TEST(Makespan, OfAlexnetIsTheBestOfAllCuts) {
  const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
  const std::string path = std::string(folder ? folder : ".") + "/alexnet.txt";
  if (!folder || !std::filesystem::exists(path))
    GTEST_SKIP() << "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with alexnet.txt";
  const Profile alexnet = read_profile(read_file(path), path);
  for (int M : {8, 32})
    for (const Link& link : {Link{}, Link{.bytes_per_s = 1e10}}) {
      const PlanOptions o = options(4, link, M);
      const Exhaustive all = try_all(alexnet, o, Policy::one_f_one_b);
      EXPECT_EQ(all.plans, 1330);
      const Plan plan = plan_network(alexnet, o, Method::antichain, Policy::one_f_one_b);
      EXPECT_NEAR(plan.step_s, all.step_s, plan_rounding * all.step_s);
      EXPECT_TRUE(plan.proved_optimal());
    }
}

}  // namespace
}  // namespace antichain::test
