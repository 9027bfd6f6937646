// The split of each planner that cuts the graph order is compared with every possible one. What they refuse
// is tested, too.
#include <algorithm>
#include <functional>
#include <random>

#include "partition/planners/balanced_sequence.h"
#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

// Calls f with the ends of every split of n elements into non-empty parts.
void every_split(int n, int parts, const std::function<void(const std::vector<int>&)>& f) {
  std::vector<int> ends(parts, n);
  std::function<void(int, int)> place = [&](int part, int begin) {
    if (part == parts - 1) return f(ends);
    for (ends[part] = begin + 1; ends[part] <= n - (parts - 1 - part); ++ends[part])
      place(part + 1, ends[part]);
  };
  place(0, 0);
}

template <class Cost>
auto costliest(const std::vector<int>& ends, Cost cost) {
  auto most = cost(0, 0, ends[0]);
  for (int p = 1; p < int(ends.size()); ++p) most = std::max(most, cost(p, ends[p - 1], ends[p]));
  return most;
}

TEST(BalancedSequence, IsAsGoodAsEverySplitWhenPartsDiffer) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3000; ++round) {
    const int n = 1 + int(random() % 10), parts = 1 + int(random() % n);
    std::vector<int64_t> before(n + 1, 0), factor(parts);
    for (int i = 0; i < n; ++i)
      before[i + 1] = before[i] + int64_t(random() % 12);  // zeros and ties are common
    for (int64_t& f : factor) f = 1 + int64_t(random() % 9);
    auto cost = [&](int p, int begin, int end) { return factor[p] * (before[end] - before[begin]); };
    int64_t best = INT64_MAX;
    every_split(n, parts,
                [&](const std::vector<int>& ends) { best = std::min(best, costliest(ends, cost)); });

    const std::vector<int> ends = balanced_sequence(n, parts, cost);
    ASSERT_EQ(int(ends.size()), parts);
    ASSERT_EQ(ends.back(), n);
    for (int p = 0; p < parts; ++p)
      ASSERT_GT(ends[p], p == 0 ? 0 : ends[p - 1]) << "part " << p << " is empty";
    ASSERT_EQ(costliest(ends, cost), best) << "round " << round;
  }
}

// Where costs differ from part to part, a longer beginning can be cheaper to cut than a shorter one.
TEST(BalancedSequence, IsRightWhereTheBeginningsDoNotRise) {
  const std::vector<int64_t> before = {0, 1, 101, 102, 103};
  const std::vector<int64_t> factor = {1, 10, 1};
  auto cost = [&](int p, int begin, int end) { return factor[p] * (before[end] - before[begin]); };
  EXPECT_EQ(balanced_sequence(4, 3, cost), std::vector<int>({2, 3, 4}));  // 101, 10, 1
}

TEST(BalancedSequence, CutsAHundredThousandElementsInto64Parts) {
  const int n = 100'000, parts = 64;
  std::mt19937_64 random(2);
  std::vector<int64_t> before(n + 1, 0);
  int64_t largest = 0;
  for (int i = 0; i < n; ++i) {
    const auto element = int64_t(random() % 1000);
    largest = std::max(largest, element);
    before[i + 1] = before[i] + element;
  }
  auto cost = [&](int, int begin, int end) { return before[end] - before[begin]; };
  const int64_t most = costliest(balanced_sequence(n, parts, cost), cost);
  EXPECT_GE(most, before[n] / parts);
  // Filling each part up to the average overshoots by one element.
  EXPECT_LE(most, before[n] / parts + largest);
}

Profile weighted(const std::vector<int64_t>& params, const std::vector<int64_t>& stash,
                 const std::vector<double>& flops) {
  Profile profile = chain(int(params.size()));
  for (size_t i = 0; i < params.size(); ++i) {
    NodeCost& cost = profile.nodes[i + 1].cost;
    cost.param_bytes = params[i];
    cost.prepared_bytes = params[i] / 2;
    cost.stash_bytes = stash[i];
    cost.flops = flops[i];
  }
  return profile;
}

Profile random_weighted(std::mt19937_64& random, int nodes) {
  std::vector<int64_t> params, stash;
  std::vector<double> flops;
  for (int i = 0; i < nodes; ++i) {
    params.push_back(int64_t(random() % 20));
    stash.push_back(int64_t(random() % 20));
    flops.push_back(double(random() % 20));
  }
  flops[0] = 1;
  return weighted(params, stash, flops);
}

std::vector<int> ends_of(const Plan& plan) {
  std::vector<int> ends;
  for (const PlanStage& stage : plan.stages) ends.push_back(stage.nodes.back());  // node 0 is the input
  return ends;
}

Cluster uneven(std::mt19937_64& random, int devices) {
  Cluster cluster;
  for (int d = 0; d < devices; ++d)
    cluster.devices.push_back(
        {.speed = 1 + double(random() % 4), .memory_bytes = 100 + int64_t(random() % 1000)});
  return cluster;
}

TEST(Cudasize, FillsTheFullestDeviceLeast) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    const int n = 1 + int(random() % 9), stages = 1 + int(random() % n);
    const Profile profile = random_weighted(random, n);
    PlanOptions options = {
        .stages = stages, .cluster = uneven(random, stages), .microbatches = 1 + int(random() % 6)};
    options.in_flight = round % 2 ? all_in_flight : one_f_one_b_in_flight;
    // From the definition: 3 x weights, what is prepared of them, and for each micro-batch in flight what is
    // kept.
    auto held = [](const NodeCost& cost) { return 3 * cost.param_bytes + cost.prepared_bytes; };
    auto fullness = [&](int s, int begin, int end) {
      const int live = round % 2 ? options.microbatches : std::min(options.microbatches, stages - s);
      int64_t bytes = 0;
      for (int i = begin; i < end; ++i)
        bytes += held(profile.nodes[i + 1].cost) + live * profile.nodes[i + 1].cost.stash_bytes;
      return double(bytes) / double(options.cluster.device(s).memory_bytes);
    };
    double best = 1e300;
    every_split(n, stages,
                [&](const std::vector<int>& ends) { best = std::min(best, costliest(ends, fullness)); });
    const Plan plan = plan_cudasize(profile, options);
    validate(plan, profile);
    // Equal fractions with different denominators may differ in the last bit as doubles.
    EXPECT_NEAR(costliest(ends_of(plan), fullness), best, 1e-12 * best);
  }
}

TEST(Cudasize, CountsTheMicrobatchesInFlight) {
  const Profile profile = weighted({0, 0, 0, 0, 0, 0}, {4, 4, 4, 4, 4, 4}, {1, 1, 1, 1, 1, 1});
  // 2 x 2 nodes against 4.
  EXPECT_EQ(ends_of(plan_cudasize(profile, {.stages = 2})), std::vector<int>({2, 6}));
  EXPECT_EQ(ends_of(plan_cudasize(profile, {.stages = 2, .microbatches = 1})), std::vector<int>({3, 6}));
}

TEST(Cudasize, TakesUnlimitedDevicesForTheLargestLimitedOne) {
  const Profile profile = weighted({6, 6, 6, 6, 6}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1});
  Cluster cluster = {.devices = {{.memory_bytes = 200}, {.memory_bytes = 400}, {}}};
  EXPECT_EQ(ends_of(plan_cudasize(profile, {.stages = 3, .cluster = cluster})), std::vector<int>({1, 3, 5}));
}

TEST(Hashrate, BalancesFlopsAgainstSpeed) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 500; ++round) {
    const int n = 1 + int(random() % 9), stages = 1 + int(random() % n);
    const Profile profile = random_weighted(random, n);
    const PlanOptions options = {.stages = stages, .cluster = uneven(random, stages)};
    auto load = [&](int s, int begin, int end) {
      double flops = 0;
      for (int i = begin; i < end; ++i) flops += profile.nodes[i + 1].cost.flops;
      return flops / options.cluster.device(s).speed;
    };
    double best = 1e300;
    every_split(n, stages,
                [&](const std::vector<int>& ends) { best = std::min(best, costliest(ends, load)); });
    const Plan plan = plan_hashrate(profile, options);
    validate(plan, profile);
    EXPECT_EQ(costliest(ends_of(plan), load), best);  // sums of small whole numbers: exact
  }
}

TEST(Hashrate, RefusesProfilesWithoutFlops) {
  Profile profile = chain(4);
  for (ProfileNode& node : profile.nodes) node.cost.flops = 0;
  expect_has(error_of([&] { plan_hashrate(profile, {.stages = 2}); }),
             "the profile of chain has no FLOPs that hashrate could balance");
  profile.nodes[2].cost.flops = 1e30;
  expect_has(error_of([&] { plan_hashrate(profile, {.stages = 2}); }), "node n2 takes 1e+30 FLOPs");
}

TEST(Block, BalancesTimesToWithinTheSlowestNode) {
  for (int seed = 0; seed < 200; ++seed) {
    const Profile profile = random_network(seed, 30);
    int64_t slowest = 0;
    int nodes = 0;
    for (const ProfileNode& node : profile.nodes)
      if (node.role != Role::input) slowest = std::max(slowest, work_ns(node.cost, 1)), ++nodes;
    for (int stages = 1; stages <= nodes; ++stages) {
      const Plan plan = plan_block(profile, {.stages = stages});
      validate(plan, profile);
      int64_t least = INT64_MAX, most = 0;
      for (const PlanStage& stage : plan.stages) {
        int64_t work = 0;
        for (int n : stage.nodes) work += work_ns(profile.nodes[n].cost, 1);
        least = std::min(least, work);
        most = std::max(most, work);
      }
      EXPECT_LE(most - least, slowest);
    }
  }
}

TEST(DataParallel, MakesEveryDeviceAReplicaOfOneStage) {
  Profile profile = chain(3);
  for (ProfileNode& node : profile.nodes) node.cost.param_bytes = 1000;
  const Plan plan =
      plan_data_parallel(profile, {.stages = 4, .cluster = one_link(byte_a_nanosecond), .microbatches = 2});
  validate(plan, profile);
  ASSERT_EQ(plan.stages.size(), 1);
  EXPECT_EQ(plan.stages[0].ranks, std::vector<int>({0, 1, 2, 3}));
  // (9 µs of work + 3 · 2 · 3000 bytes at a byte a nanosecond, shared by 2 micro-batches) / 4
  EXPECT_DOUBLE_EQ(plan.bottleneck_s, 4.5e-6);
  EXPECT_EQ(plan.method, "data-parallel");
  EXPECT_EQ(plan_data_parallel(profile, {.stages = 8}).ranks(), 8);  // more devices than nodes
}

TEST(DataParallel, RefusesReplicasOfStages) {
  expect_has(error_of([] {
               plan_data_parallel(chain(3), {.stages = 2, .replicas = {.of_stage = {2, 1}}});
             }),
             "data-parallel makes every device a replica");
}

class SequencePlanner : public ::testing::TestWithParam<Planner> {};

TEST_P(SequencePlanner, RefusesReplicas) {
  Profile profile = chain(5);
  profile.nodes[1].cost.flops = 1;
  for (const Replicas& replicas : {Replicas{.automatic = true}, Replicas{.of_stage = {2, 1}}})
    expect_has(error_of([&] { GetParam()(profile, {.stages = 2, .replicas = replicas, .cuts = {"n1"}}); }),
               "choose antichain, pipedream or data-parallel");
}

TEST_P(SequencePlanner, UsesNoMoreStagesThanNodesWhenFewerWillDo) {
  Profile profile = chain(3);
  profile.nodes[1].cost.flops = 1;
  const Plan plan = GetParam()(profile, {.stages = 5, .at_most = true, .cuts = {"n1", "n2"}});
  validate(plan, profile);
  EXPECT_EQ(plan.stages.size(), 3);
  expect_has(error_of([&] { GetParam()(profile, {.stages = 5}); }), "5 stages were asked for");
}

TEST_P(SequencePlanner, IsDeterministic) {
  for (int seed = 0; seed < 20; ++seed) {
    Profile profile = random_network(seed, 20);
    for (ProfileNode& node : profile.nodes) node.cost.flops = double(node.cost.output_bytes + 1);
    PlanOptions options = {.stages = 1};
    for (const ProfileNode& node : profile.nodes)
      if (node.role != Role::input && options.cuts.empty()) options.cuts.push_back(node.name);
    for (const ProfileNode& node : profile.nodes) options.stages += node.role != Role::input;
    options.stages = std::min(2, options.stages - 1);
    if (options.stages == 1) options.cuts.clear();
    EXPECT_EQ(plan_hash(GetParam()(profile, options)), plan_hash(GetParam()(profile, options)));
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, SequencePlanner,
                         ::testing::Values(plan_uniform, plan_cudasize, plan_hashrate, plan_handsplit,
                                           plan_block));

}  // namespace
}  // namespace antichain
