// Times are simulated on clusters: replicas and their all-reduce, devices of unequal speed, two levels of
// links, and the lean path that planners use, bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/program/memory_shares.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "pipeline/simulate/trace_events.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/simulate/rounding.h"

namespace antichain::test {
namespace {

Timeline simulate(const Profile& profile, const Plan& plan, Policy policy, int microbatches,
                  const Cluster& cluster) {
  return antichain::simulate(make_schedule(profile, plan, policy, microbatches), plan, profile, cluster);
}

Event find(const Timeline& timeline, int rank, const std::string& word) {
  for (const Event& e : timeline.events)
    if (e.rank == rank && print(e.action) == word) return e;
  ADD_FAILURE() << word << " of rank " << rank << " is not there";
  return {.start_s = NAN, .end_s = NAN};
}

// One stage, r replicas: the fullest replica's micro-batches, the all-reduce, the update.
TEST(SimulateReplicas, DataParallelIsTheFormula) {
  const Profile profile = chain(3, {.forward_s = 1,
                                    .backward_input_s = 2,
                                    .backward_weight_s = 0.5,
                                    .update_s = 0.25,
                                    .param_bytes = 100});
  const Link link{.bytes_per_s = 40, .latency_s = 7};  // an all-reduce is long: its latency is not counted
  for (int r = 1; r <= 6; ++r)
    for (int M = r; M <= 17; ++M)
      for (Policy policy : {Policy::one_f_one_b, Policy::gpipe}) {
        const Plan plan = replicated(plan_of(profile, {{2, 3, 4}}), {r});
        const Timeline timeline = simulate(profile, plan, policy, M, one_link(link));
        const double all_reduce_s = 2. * (r - 1) / r * 300 / 40;
        const double expected = (M + r - 1) / r * (3 * 3.5) + all_reduce_s + 3 * 0.25;
        EXPECT_NEAR(timeline.step_s, expected, rounding * expected) << r << " replicas, M " << M;
        double busy = 0;
        for (double b : timeline.busy_s) busy += b;
        const double computed = M * (3 * 3.5) + r * (3 * 0.25);  // the all-reduce is no work
        EXPECT_NEAR(busy, computed, rounding * computed);
      }
}

// While the last backward, 7.5 s, computes beside the all-reduce, the link takes its share of the core.
// The link takes its share as long as messages cross, whatever the core would compute meanwhile.
TEST(SimulateReplicas, ALinkMayTakeAShareOfTheCore) {
  const Profile profile = chain(3, {.forward_s = 1,
                                    .backward_input_s = 2,
                                    .backward_weight_s = 0.5,
                                    .update_s = 0.25,
                                    .param_bytes = 100});
  const Plan plan = replicated(plan_of(profile, {{2, 3, 4}}), {2});
  const auto lost_s = [&](double bytes_per_s, double speed) {
    Cluster cluster = one_link({.bytes_per_s = bytes_per_s});
    cluster.devices = {{.speed = speed}, {.speed = speed}};
    const auto step_s = [&] { return simulate(profile, plan, Policy::one_f_one_b, 4, cluster).step_s; };
    const double without_s = step_s();
    cluster.within_node.core_share = 0.25;
    return step_s() - without_s;
  };
  for (const double speed : {0.5, 1., 2.}) {
    EXPECT_DOUBLE_EQ(lost_s(100, speed), 0.25 * 3);           // an all-reduce of 3 s
    EXPECT_DOUBLE_EQ(lost_s(10, speed), 0.25 * 7.5 / speed);  // one of 30 s, beside a backward
  }
}

// 2 stages x 2 replicas, t_f = 1, t_b = 2, messages of 1 s, all-reduce 2 (1/2) 60 / 20 = 3 s, update 0.5 s, M
// = 3. a2 is there at 3:
//   rank 0 (0, even)  0F0 0..1  0F2 1..2             0B0 6..8  0B2 9..11  0A 11..14  0U
//   rank 1 (0, odd)   0F1 0..1                       0B1 6..8  waits      0A 11..14  0U
//   rank 2 (1, even)  1F0 2..3  1B0 3..5  1F2 5..6   1B2 6..8  1A 8..11   1U 11..11.5
//   rank 3 (1, odd)   1F1 2..3  1B1 3..5             waits     1A 8..11   1U
TEST(SimulateReplicas, TwoTimesTwoByHand) {
  const Profile profile = chain(
      2, {.forward_s = 1, .backward_input_s = 2, .update_s = 0.5, .output_bytes = 20, .param_bytes = 60});
  const Plan plan = replicated(one_node_each(profile), {2, 2});
  const Timeline timeline = simulate(profile, plan, Policy::one_f_one_b, 3, one_link({.bytes_per_s = 20}));
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0F2").end_s, 2);
  EXPECT_DOUBLE_EQ(find(timeline, 2, "1R0:a2<0").end_s, 2);
  EXPECT_DOUBLE_EQ(find(timeline, 2, "1B2").end_s, 8);
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0R0:g2.3<2").end_s, 6);
  EXPECT_DOUBLE_EQ(find(timeline, 1, "0B1").end_s, 8);
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0B2").end_s, 11);
  for (int rank : {0, 1}) {
    EXPECT_DOUBLE_EQ(find(timeline, rank, "0A").start_s, 11);
    EXPECT_DOUBLE_EQ(find(timeline, rank, "0A").end_s, 14);
  }
  for (int rank : {2, 3}) {
    EXPECT_DOUBLE_EQ(find(timeline, rank, "1A").start_s, 8);
    EXPECT_DOUBLE_EQ(find(timeline, rank, "1U").end_s, 11.5);
  }
  EXPECT_DOUBLE_EQ(timeline.step_s, 14.5);
  EXPECT_EQ(timeline.busy_s, (std::vector<double>{6.5, 3.5, 6.5, 3.5}));
}

TEST(SimulateReplicas, TheTraceNamesTheAllReduce) {
  const Profile profile = chain(1, {.forward_s = 1});
  const auto trace = to_trace(
      simulate(profile, replicated(one_node_each(profile), {2}), Policy::gpipe, 2, one_link({})), profile);
  EXPECT_EQ(
      std::count_if(trace.begin(), trace.end(),
                    [](const TraceEvent& e) { return e.label == "all-reduce" && e.category == "reduce"; }),
      2);
}

// Device 2 is half as fast, device 0 twice as fast; the plan names devices in its own order.
TEST(SimulateCluster, TimesAreDividedByTheDevicesSpeed) {
  Profile profile = chain(2, {.forward_s = 1, .backward_input_s = 2, .update_s = 1});
  profile.overhead_s = 0.5;
  const Cluster cluster{.devices = {{.speed = 2}, {.speed = 1}, {.speed = 0.5}}};
  Plan plan = one_node_each(profile);
  plan.stages[0].devices = {2};
  plan.stages[1].devices = {0};
  const Timeline timeline = simulate(profile, plan, Policy::one_f_one_b, 1, cluster);
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0F0").end_s, 3);     // 1.5 / 0.5
  EXPECT_DOUBLE_EQ(find(timeline, 1, "1F0").end_s, 3.75);  // + 1.5 / 2
  EXPECT_DOUBLE_EQ(find(timeline, 1, "1B0").end_s, 5);     // + 2.5 / 2
  EXPECT_DOUBLE_EQ(find(timeline, 1, "1U").end_s, 5.5);    // + 1 / 2
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0B0").end_s, 10);    // + 2.5 / 0.5
  EXPECT_DOUBLE_EQ(timeline.step_s, 12);                   // + 1 / 0.5
}

// Replicas of unequal speed: turns do not ask who is free, so the slow one is waited for.
TEST(SimulateCluster, TheAllReduceWaitsForTheSlowestReplica) {
  const Profile profile = chain(1, {.forward_s = 1, .backward_input_s = 2, .param_bytes = 8});
  const Plan plan = replicated(one_node_each(profile), {2});
  const Cluster cluster{.devices = {{.speed = 1}, {.speed = 0.5}}, .within_node = {.bytes_per_s = 8}};
  const Timeline timeline = simulate(profile, plan, Policy::one_f_one_b, 4, cluster);
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0B2").end_s, 6);
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0A").start_s, 12);
  EXPECT_DOUBLE_EQ(timeline.step_s, 13);
}

// Stage 0 and 1 share a node, 2 is on another; the skip goes from 0 to 2.
TEST(SimulateCluster, AMessageTakesTheLinkBetweenItsTwoDevices) {
  Profile profile = empty_network();
  profile.nodes.push_back(node("image", Role::input, {}, false, {}));
  profile.nodes.push_back(node("stem", Role::compute, {0}, true, {.forward_s = 1, .output_bytes = 40}));
  profile.nodes.push_back(node("branch", Role::compute, {1}, true, {.forward_s = 10, .output_bytes = 10}));
  profile.nodes.push_back(node("loss", Role::loss, {1, 2}, true, {.forward_s = 1}));
  const Plan plan = plan_of(profile, {{1}, {2}, {3}});
  const Cluster cluster{.devices = {{.node = 0}, {.node = 0}, {.node = 1}},
                        .within_node = {.bytes_per_s = 40, .latency_s = 0.5},
                        .between_nodes = {.bytes_per_s = 5, .latency_s = 2}};
  const Timeline timeline = simulate(profile, plan, Policy::forward_only, 1, cluster);
  EXPECT_DOUBLE_EQ(find(timeline, 1, "1R0:a1<0").end_s, 2.5);   // 1 + 0.5 + 1
  EXPECT_DOUBLE_EQ(find(timeline, 2, "2R0:a1<0").end_s, 11);    // 1 + 2 + 8
  EXPECT_DOUBLE_EQ(find(timeline, 2, "2R0:a2<1").end_s, 16.5);  // 12.5 + 2 + 2
}

TEST(SimulateCluster, AnAllReduceTakesTheSlowestLinkItNeeds) {
  const Profile profile = chain(2, {.param_bytes = 60});
  const Cluster cluster{.devices = {{.node = 0}, {.node = 0}, {.node = 0}, {.node = 1}},
                        .within_node = {.bytes_per_s = 60},
                        .between_nodes = {.bytes_per_s = 6}};
  Plan plan = replicated(one_node_each(profile), {2, 2});
  plan.stages[0].devices = {0, 1};
  plan.stages[1].devices = {2, 3};
  const Timeline timeline = simulate(profile, plan, Policy::gpipe, 2, cluster);
  EXPECT_DOUBLE_EQ(find(timeline, 0, "0A").end_s - find(timeline, 0, "0A").start_s, 1);
  EXPECT_DOUBLE_EQ(find(timeline, 2, "1A").end_s - find(timeline, 2, "1A").start_s, 10);
}

TEST(SimulateCluster, OneLinkIsAsManyEqualDevicesAsThePlanWants) {
  const Profile profile = chain(4, {.forward_s = 1, .backward_input_s = 2, .output_bytes = 5});
  const Link link{.bytes_per_s = 3, .latency_s = 0.1};
  const Plan plan = one_node_each(profile);
  EXPECT_EQ(simulate(profile, plan, Policy::one_f_one_b, 6, one_link(link)).step_s,
            simulate(profile, plan, Policy::one_f_one_b, 6, equal_devices(4, link)).step_s);
}

TEST(SimulateCluster, RefusesAPlanForMoreDevices) {
  const Profile profile = chain(3);
  expect_error([&] { simulate(profile, one_node_each(profile), Policy::gpipe, 2, equal_devices(2, {})); },
               {"rank 2", "device 2", "devices are 0 to 1"});
}

Cluster random_cluster(std::mt19937& random, int devices) {
  const auto number = [&] { return 0.25 * double(1 + random() % 12); };
  Cluster cluster{.within_node = {.bytes_per_s = 100 * number(), .latency_s = 0.1 * number()},
                  .between_nodes = {.bytes_per_s = 10 * number(), .latency_s = number()}};
  for (int d = 0; d < devices; ++d) cluster.devices.push_back({.speed = number(), .node = int(random() % 2)});
  return cluster;
}

// Planners choose by step_s what users see by simulate.
TEST(StepSeconds, AreTheSimulatedOnesBitForBit) {
  std::mt19937 random(21);
  for (int trial = 0; trial < 900; ++trial) {
    Profile profile = random_network(random, 4 + int(random() % 20));
    for (ProfileNode& node : profile.nodes)
      node.cost.param_bytes = int(random() % 50), node.cost.update_s = 0.1;
    profile.overhead_s = 0.01 * double(random() % 3);
    Plan plan =
        randomly_replicated(random, random_plan(random, profile, 1 + int(random() % 5)), 1 + trial % 4);
    const Cluster cluster =
        trial % 2 ? random_cluster(random, plan.ranks()) : one_link({.bytes_per_s = 50, .latency_s = 0.1});
    const Policy policy = std::array{Policy::one_f_one_b, Policy::gpipe, Policy::forward_only}[trial % 3];
    const int M = 4 + int(random() % 9);
    EXPECT_EQ(step_s(profile, plan, policy, M, cluster), simulate(profile, plan, policy, M, cluster).step_s)
        << "trial " << trial;
  }
}

TEST(StepSeconds, RefuseAReplicaWithoutAMicrobatch) {
  const Profile profile = chain(1);
  const Plan plan = replicated(one_node_each(profile), {3});
  expect_error([&] { step_s(profile, plan, Policy::gpipe, 2, {}); }, {"3 replicas", "2 micro-batches"});
  expect_error([&] { step_s(profile, plan, Policy::gpipe, 0, {}); }, {"0 micro-batches"});
}

// Chain of two stages, the first on two devices: 2 of its 3 micro-batches in flight on one replica, 1 of 1 on
// the other.
TEST(PeakMemory, OfReplicasIsThatOfTheirShare) {
  const NodeCost cost{.output_bytes = 100, .param_bytes = 7, .stash_bytes = 3, .keeps_output = true};
  const Profile profile = chain(2, cost);
  const Plan plan = replicated(one_node_each(profile), {2, 1});
  const auto bytes = peak_memory_bytes(make_schedule(profile, plan, Policy::one_f_one_b, 3), plan, profile);
  // Weights, stash, output (kept and sent), received gradients (one posted ahead, where there is one), and
  // what the other replica sends of its gradients, in whole parts of 64 bytes.
  const int64_t even = 3 * 7 + 2 * 3 + 2 * 100 + 2 * 100 + 64;
  const int64_t odd = 3 * 7 + 1 * 3 + 1 * 100 + 1 * 100 + 64;
  EXPECT_EQ(bytes[0], even);
  EXPECT_EQ(bytes[1], odd);
}

// Tensors of a micro-batch are all gone when the others' gradients come: room for the larger of the two.
TEST(PeakMemory, HasRoomForTheGradientsThatAReplicaAddsUp) {
  const Profile profile = chain(1, {.output_bytes = 100, .param_bytes = 900});
  const auto peak = [&](int replicas) {
    const Plan plan = replicated(one_node_each(profile), {replicas});
    return peak_memory_bytes(make_schedule(profile, plan, Policy::one_f_one_b, 3), plan, profile)[0];
  };
  EXPECT_EQ(peak(1), 3 * 900 + 100);
  EXPECT_EQ(peak(2), 3 * 900 + 512) << "900 bytes are 15 parts of 64 bytes, so one replica adds up 8 of them";
  EXPECT_EQ(peak(3), 3 * 900 + 2 * 320);
}

TEST(PeakMemory, HasAPartOfTheSlotsWhereReplicasShareThemOut) {
  const Profile profile = chain(1, {.output_bytes = 100, .param_bytes = 900});
  const auto peak = [&](int replicas) {
    Plan plan = replicated(one_node_each(profile), {replicas});
    plan.shard_optimiser = true;
    return peak_memory_bytes(make_schedule(profile, plan, Policy::one_f_one_b, 3), plan, profile)[0];
  };
  EXPECT_EQ(peak(2), 2 * 900 + 450 + 512);
  EXPECT_EQ(peak(3), 2 * 900 + 300 + 2 * 320);
}

// Three nodes of 300 kB and 1, 2, 3 s of backward; M = 2 on 2 replicas, 0.3 MB/s: each bucket takes 1 s.
//   0F0 0..3  0B0 3..9: node 4 is passed at 6, 3 at 8, 2 at 9
//   link: bucket 0 6..7, 1 8..9, 2 9..10
TEST(SimulateReplicas, BucketsHideBehindTheLastBackward) {
  Profile profile = chain(3, {.forward_s = 1, .update_s = 0.5, .param_bytes = 300'000});
  for (int n = 2; n <= 4; ++n) profile.nodes[size_t(n)].cost.backward_input_s = n - 1;
  const Plan plan = replicated(plan_of(profile, {{2, 3, 4}}), {2});
  const auto of_rank = [](const Timeline& timeline, const std::string& word) {
    return find(timeline, 1, word);
  };
  Timeline timeline = simulate(profile, plan, Policy::one_f_one_b, 2, one_link({.bytes_per_s = 3e5}));
  EXPECT_DOUBLE_EQ(of_rank(timeline, "0B1").end_s, 9);
  for (const auto& [word, at_s] : {std::pair("0A0", 7.), {"0A1", 9.}, {"0A2", 10.}})
    EXPECT_DOUBLE_EQ(of_rank(timeline, word).delivered_s, at_s) << word;
  EXPECT_DOUBLE_EQ(of_rank(timeline, "0A0").end_s, 9) << "the rank comes to it then";
  EXPECT_DOUBLE_EQ(timeline.step_s, 11.5);
  // With 0.1 MB/s each takes 3 s, one after the other: 6..9..12..15.
  timeline = simulate(profile, plan, Policy::one_f_one_b, 2, one_link({.bytes_per_s = 1e5}));
  EXPECT_DOUBLE_EQ(of_rank(timeline, "0A1").end_s, 12);
  EXPECT_DOUBLE_EQ(timeline.step_s, 16.5);
  // In one bucket it begins after the backward.
  Schedule whole = make_schedule(profile, plan, Policy::one_f_one_b, 2);
  for (auto& actions : whole.ranks) {
    std::erase_if(actions, [](const Action& a) { return a.bucket > 0; });
    std::ranges::find(actions, Verb::reduce, &Action::verb)->bucket = -1;
  }
  EXPECT_DOUBLE_EQ(simulate(whole, plan, profile, one_link({.bytes_per_s = 1e5})).step_s, 9 + 9 + 1.5);
}

// The same, but each bucket takes 0.5 s, an update a half of 1.5 s, and then all weights take 1.5 s.
TEST(SimulateReplicas, WeightsFollowTheUpdateWhereTheOptimiserIsSharded) {
  Profile profile = chain(3, {.forward_s = 1, .update_s = 0.5, .param_bytes = 300'000});
  for (int n = 2; n <= 4; ++n) profile.nodes[size_t(n)].cost.backward_input_s = n - 1;
  Plan plan = replicated(plan_of(profile, {{2, 3, 4}}), {2});
  plan.shard_optimiser = true;
  const Timeline timeline = simulate(profile, plan, Policy::one_f_one_b, 2, one_link({.bytes_per_s = 3e5}));
  EXPECT_DOUBLE_EQ(find(timeline, 1, "0A2").delivered_s, 9.5);
  EXPECT_DOUBLE_EQ(timeline.step_s, 9.5 + 0.75 + 1.5);
}

TEST(GradientBuckets, AreOfAboutEqualBytesFromTheLastNodeOn) {
  Profile profile = chain(6, {.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1});
  const std::vector<int> nodes = {2, 3, 4, 5, 6, 7};
  EXPECT_EQ(bucket_count(profile, nodes), 1) << "there are no weights";
  const std::vector<int64_t> bytes = {100'000, 0, 900'000, 500'000, 0, 500'000};
  for (size_t i = 0; i < bytes.size(); ++i) profile.nodes[size_t(nodes[i])].cost.param_bytes = bytes[i];
  EXPECT_EQ(bucket_count(profile, nodes), 4) << "as many as nodes with weights";
  const auto firsts = [&](int count) {
    std::vector<int> first;
    for (const GradientBucket& bucket : gradient_buckets(profile, nodes, count))
      first.push_back(bucket.first);
    return first;
  };
  EXPECT_EQ(firsts(1), (std::vector<int>{0}));
  EXPECT_EQ(firsts(2), (std::vector<int>{3, 0}));
  EXPECT_EQ(firsts(3), (std::vector<int>{3, 2, 0}));
  EXPECT_EQ(firsts(4), (std::vector<int>{5, 3, 2, 0}));
  const auto two = gradient_buckets(profile, nodes, 2);
  EXPECT_EQ(two[0].bytes, 1'000'000);
  EXPECT_DOUBLE_EQ(two[0].share + two[1].share, 1);
  EXPECT_DOUBLE_EQ(two[0].of_backward, 0.5) << "three of six nodes";
  EXPECT_EQ(two[1].of_backward, 1);
  EXPECT_EQ(two[1].of_weights, 1);
  profile.nodes[7].cost.param_bytes = 50 << 20;
  EXPECT_EQ(bucket_count(profile, nodes), 4);
  EXPECT_EQ(firsts(4), (std::vector<int>{5, 3, 2, 0}));
}

// There are two nodes of 300 kB, the first with 400 kB of output: the last node's bucket is there while the
// first one's gradient passes, the first one's when no tensor of a micro-batch is left.
TEST(PeakMemory, HasRoomForBucketsAsTheyCome) {
  Profile profile = chain(2, {.output_bytes = 400'000, .param_bytes = 300'000});
  profile.nodes.back().cost.output_bytes = 0;
  const Plan plan = replicated(plan_of(profile, {{2, 3}}), {2});
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 2);
  ASSERT_EQ(buckets_in(schedule.ranks[0], 0), 2);
  EXPECT_EQ(peak_memory_bytes(schedule, plan, profile)[0], 3 * 600'000 + 400'000 + 150'016);
}

// 15 ms in 90 cells, six a millisecond; replica 1 waits for replica 0 before both add up their gradients for
// 2 ms.
TEST(Draw, ShowsTheAllReduce) {
  const NodeCost cost{.forward_s = 1e-3, .backward_input_s = 2e-3, .update_s = 1e-3, .param_bytes = 4000};
  const Profile profile = chain(2, cost);
  const Plan plan = replicated(one_node_each(profile), {2, 1});
  EXPECT_EQ(
      draw(simulate(profile, plan, Policy::one_f_one_b, 3, one_link({.bytes_per_s = 2e6})), 3, 99),
      "rank 0 |000000222222............aaaaaaaaaaaa........................cccccccccccc============######|\n"
      "rank 1 |111111....................................bbbbbbbbbbbb..................============######|\n"
      "rank 2 |......000000aaaaaaaaaaaa111111bbbbbbbbbbbb222222cccccccccccc######........................|\n"
      "       |0          |2          |4          |6          |8          |10         |12         |14 ms\n"
      "       0-9 forward of micro-batch m mod 10   a-j its backward   = all-reduce   # update   . idle\n");
}

}  // namespace
}  // namespace antichain::test
