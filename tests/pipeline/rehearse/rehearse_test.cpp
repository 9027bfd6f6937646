// Rehearsals are compared with the simulator. A wait may come late but never early, so no event of a
// rehearsal can end before the same event of the simulation. That holds on the busiest machine, for every
// network, cut, replica and link. How late is a matter of the machine, so the quickest of several steps is
// judged, with a wide margin.
#include "pipeline/rehearse/rehearse.h"

#include <gtest/gtest.h>

#include <chrono>

#include "pipeline/host/seconds.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/clock_offset.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {
namespace {

constexpr double rounding_s = 1e-6;  // times are differences of clocks that count from the machine's start
// Two cores shared with other tests; the figures of a quiet machine are in docs/experiments.md.
constexpr double busy_machine = 1.25;

struct Rehearsed {
  Timeline simulated, quickest;
};

Rehearsed run(const Profile& profile, const Plan& plan, Policy policy, int microbatches,
              const Cluster& cluster, const RehearseOptions& options = {}, int steps = 3) {
  const Schedule schedule = make_schedule(profile, plan, policy, microbatches);
  Rehearsed result{.simulated = simulate(schedule, plan, profile, cluster)};
  run_ranks(plan.ranks(), [&](JobTransport& transport) {
    Rehearsal rehearsal(profile, plan, schedule, cluster, transport, options);
    for (int i = 0; i < steps; ++i) {
      Timeline timeline = rehearsal.step();
      if (transport.rank() != 0) continue;
      if (i == 0 || timeline.step_s < result.quickest.step_s) result.quickest = std::move(timeline);
    }
  });
  return result;
}

void expect_never_early(const Rehearsed& r, double time_scale = 1) {
  ASSERT_EQ(r.quickest.events.size(), r.simulated.events.size());
  for (size_t i = 0; i < r.simulated.events.size(); ++i) {
    const Event &simulated = r.simulated.events[i], &rehearsed = r.quickest.events[i];
    EXPECT_EQ(rehearsed.rank, simulated.rank);
    EXPECT_EQ(rehearsed.action, simulated.action);
    EXPECT_GE(rehearsed.end_s, simulated.end_s - rounding_s / time_scale) << print(simulated.action);
  }
}

Profile chain_in_ms(int length, NodeCost cost) {
  for (double* s : {&cost.forward_s, &cost.backward_input_s, &cost.backward_weight_s, &cost.update_s})
    *s *= 1e-3;
  return chain(length, cost);
}

TEST(Rehearsal, TakesTheSimulatedTime) {
  const Profile profile = chain_in_ms(4, {.forward_s = 10,
                                          .backward_input_s = 10,
                                          .backward_weight_s = 10,
                                          .update_s = 5,
                                          .output_bytes = 1000});
  for (const Policy& policy : {Policy::one_f_one_b, Policy::gpipe}) {
    const Rehearsed r = run(profile, one_node_each(profile), policy, 6, one_link({}));
    expect_never_early(r);
    EXPECT_LT(r.quickest.step_s, busy_machine * r.simulated.step_s);
    for (size_t rank = 0; rank < 4; ++rank)
      EXPECT_LT(r.quickest.busy_s[rank], busy_machine * r.simulated.busy_s[rank]);
  }
}

// A link that takes longer than the stages: messages wait for each other, and a token stands for 20 MB.
// Steps that overlap come at the simulated period.
TEST(Rehearsal, OverlappingStepsComeAtTheSimulatedPeriod) {
  const Profile profile = chain_in_ms(
      3, {.forward_s = 3, .backward_input_s = 3, .backward_weight_s = 3, .update_s = 2, .output_bytes = 100});
  const Plan plan = one_node_each(profile);
  const Cluster cluster = one_link({.bytes_per_s = 1e5});
  const Schedule schedule = make_schedule(profile, plan, policy("zb-h2"), 6);
  const Timeline simulated = simulate(schedule, plan, profile, cluster, Steps::overlapped);
  ASSERT_LT(simulated.period_s, 0.95 * simulated.step_s);
  double quickest_s = INFINITY;
  run_ranks(plan.ranks(), [&](JobTransport& transport) {
    Rehearsal rehearsal(profile, plan, schedule, cluster, transport);
    for (int i = 0; i < 3; ++i) {
      const Timeline rehearsed = rehearsal.overlapping_steps(6);
      if (transport.rank() == 0) quickest_s = std::min(quickest_s, rehearsed.period_s);
    }
  });
  EXPECT_GE(quickest_s, simulated.period_s - rounding_s);
  EXPECT_LE(quickest_s, simulated.period_s * busy_machine);
}

TEST(Rehearsal, AVoteIsAsLongAsSimulated) {
  const Profile profile =
      chain_in_ms(3, {.forward_s = 5, .backward_input_s = 10, .update_s = 2, .output_bytes = 100});
  const Plan plan = one_node_each(profile);
  const Cluster cluster = one_link({.bytes_per_s = 1e5, .latency_s = 5e-3});
  const Schedule schedule = with_votes(make_schedule(profile, plan, Policy::one_f_one_b, 4));
  const Timeline simulated = simulate(schedule, plan, profile, cluster);
  double quickest_s = INFINITY;
  run_ranks(plan.ranks(), [&](JobTransport& transport) {
    Rehearsal rehearsal(profile, plan, schedule, cluster, transport);
    for (int i = 0; i < 3; ++i)
      if (const Timeline rehearsed = rehearsal.step(); transport.rank() == 0)
        quickest_s = std::min(quickest_s, rehearsed.step_s);
  });
  EXPECT_GE(quickest_s, simulated.step_s - rounding_s);
  EXPECT_LE(quickest_s, simulated.step_s * busy_machine);
}

TEST(Rehearsal, TheLinkChargesTheTrueBytes) {
  const Profile profile = chain_in_ms(2, {.forward_s = 2, .backward_input_s = 2, .output_bytes = 20'000'000});
  const Cluster cluster = one_link({.bytes_per_s = 1e9, .latency_s = 0.005});
  const Rehearsed r = run(profile, one_node_each(profile), Policy::gpipe, 8, cluster);
  EXPECT_GT(r.simulated.step_s, 8 * 0.025);  // the link alone
  expect_never_early(r);
  EXPECT_LT(r.quickest.step_s, busy_machine * r.simulated.step_s);
}

TEST(Rehearsal, SendsTheTruePayloadWhenAsked) {
  const Profile profile =
      chain_in_ms(3, {.forward_s = 10, .backward_input_s = 10, .output_bytes = (1 << 20) + 1});
  const Rehearsed r =
      run(profile, one_node_each(profile), Policy::one_f_one_b, 5, one_link({}), {.true_payload = true});
  expect_never_early(r);
}

TEST(Rehearsal, ReplicasWaitForTheirAllReduce) {
  const Profile profile = chain_in_ms(
      2,
      {.forward_s = 5, .backward_input_s = 10, .update_s = 2, .output_bytes = 20, .param_bytes = 40'000'000});
  const Plan plan = replicated(one_node_each(profile), {2, 3}, {4, 0, 2, 1, 3});
  const Rehearsed r = run(profile, plan, Policy::one_f_one_b, 7, one_link({.bytes_per_s = 1e9}));
  expect_never_early(r);
  EXPECT_LT(r.quickest.step_s, busy_machine * r.simulated.step_s);
}

TEST(Rehearsal, DevicesOfDifferentSpeedAndNode) {
  const Profile profile = chain_in_ms(3, {.forward_s = 8, .backward_input_s = 8, .output_bytes = 1'000'000});
  const Cluster cluster{.devices = {{.speed = 2}, {.speed = 1}, {.speed = 0.5, .node = 1}},
                        .within_node = {.bytes_per_s = 1e10},
                        .between_nodes = {.bytes_per_s = 1e8, .latency_s = 0.001}};
  const Rehearsed r = run(profile, one_node_each(profile), Policy::one_f_one_b, 4, cluster);
  expect_never_early(r);
  EXPECT_LT(r.quickest.step_s, busy_machine * r.simulated.step_s);
}

// Skips, several inputs and tensors without gradients; what is wrong with a slot, an order or a channel
// hangs, or is early.
TEST(Rehearsal, RandomNetworksCutsReplicasAndLinks) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    Profile profile = random_network(random, 9);
    for (ProfileNode& node : profile.nodes)
      for (double* s : {&node.cost.forward_s, &node.cost.backward_input_s, &node.cost.backward_weight_s})
        *s *= 2e-5;
    const Plan plan = randomly_replicated(random, random_plan(random, profile, 1 + round % 4), 2);
    const Cluster cluster = one_link(round % 2 ? Link{} : Link{.bytes_per_s = 1e6, .latency_s = 1e-4});
    const Policy policy = round % 3 ? Policy::one_f_one_b : Policy::gpipe;
    expect_never_early(run(profile, plan, policy, 2 + round % 5, cluster, {}, 2));
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Rehearsal, AStretchedStepReportsTimesAsTheyWere) {
  const Profile profile = chain_in_ms(2, {.forward_s = 0.5, .backward_input_s = 0.5});
  const auto start = std::chrono::steady_clock::now();
  const Rehearsed r = run(profile, one_node_each(profile), Policy::one_f_one_b, 4,
                          one_link({.latency_s = 1e-4}), {.time_scale = 20}, 1);
  EXPECT_GE(seconds_since(start), 20 * r.simulated.step_s);
  expect_never_early(r, 20);
  EXPECT_LT(r.quickest.step_s, busy_machine * r.simulated.step_s);
}

TEST(Rehearsal, AnotherNumberOfRanksIsRefused) {
  const Profile profile = chain(2);
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2);
  const Cluster cluster = one_link({});
  const auto on_three = [&] {
    run_ranks(3, [&](JobTransport& t) { Rehearsal(profile, plan, schedule, cluster, t); });
  };
  expect_error(on_three, {"for 2 ranks", "3 rehearse it"});
}

TEST(Rehearsal, AComfortableScale) {
  const auto scale = [](std::vector<double> stages_ms) {
    Profile profile = chain(int(stages_ms.size()));
    for (size_t i = 0; i < stages_ms.size(); ++i)
      profile.nodes[i + 2].cost = {.forward_s = stages_ms[i] * 0.25e-3,
                                   .backward_input_s = stages_ms[i] * 0.75e-3};
    return comfortable_time_scale(profile, one_node_each(profile), one_link({}));
  };
  EXPECT_DOUBLE_EQ(scale({10, 20}), 1);
  EXPECT_DOUBLE_EQ(scale({4, 20}), 2.5);
  EXPECT_DOUBLE_EQ(scale({1, 20}), 5) << "not beyond 100 ms for the slowest";
  EXPECT_DOUBLE_EQ(scale({0, 20}), 5);
  EXPECT_DOUBLE_EQ(scale({0.1, 500}), 1);
  EXPECT_DOUBLE_EQ(scale({0, 0}), 1);
}

// Clocks that are whole seconds apart.
TEST(RehearsalClock, FindsTheOffsetToRankZero) {
  run_ranks(3, [](JobTransport& transport) {
    const auto start = std::chrono::steady_clock::time_point();
    const auto mine = [&] { return seconds_since(start) - 5 * transport.rank(); };
    // The quickest of 32 round trips between threads takes well below a millisecond.
    EXPECT_NEAR(clock_offset_s(transport, mine), 5 * transport.rank(), 0.005);
  });
}

}  // namespace
}  // namespace antichain::test
