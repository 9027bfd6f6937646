// Simulated times are compared with formulas and with examples worked out by hand. Memory, pictures and
// traces are tested, too.
#include "pipeline/simulate/simulate.h"
#include "pipeline/program/memory_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "partition/planners/planner.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/simulate/trace_events.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/simulate/rounding.h"

namespace antichain::test {
namespace {

Timeline simulate(const Profile& profile, const Plan& plan, Policy policy, int microbatches, Link link = {}) {
  return antichain::simulate(make_schedule(profile, plan, policy, microbatches), plan, profile,
                             one_link(link));
}

double end_of(const Timeline& timeline, const std::string& word) {
  for (const Event& e : timeline.events)
    if (print(e.action) == word) return e.end_s;
  ADD_FAILURE() << word << " is not there";
  return NAN;
}

// Makespan (M + S − 1)(t_f + t_b) for equal stages and a free link, for forwards longer and shorter than
// backwards.
TEST(Simulate, EqualStagesTakeTheClassicTime) {
  for (const auto& [forward_s, backward_s] : {std::pair(1.0, 2.0), std::pair(3.0, 0.5)})
    for (int S = 1; S <= 8; ++S)
      for (int M = 1; M <= 24; ++M)
        for (Policy policy : {Policy::one_f_one_b, Policy::gpipe}) {
          const Profile profile = chain(S, {.forward_s = forward_s, .backward_input_s = backward_s});
          const Timeline timeline = simulate(profile, one_node_each(profile), policy, M);
          const double expected = (M + S - 1) * (forward_s + backward_s);
          EXPECT_NEAR(timeline.step_s, expected, rounding * expected) << S << " " << M << " " << policy.name;
          EXPECT_NEAR(timeline.bubble_fraction(), (S - 1.0) / (M + S - 1.0), rounding);
        }
}

TEST(Simulate, OverheadAndUpdateAreCounted) {
  Profile profile = chain(1, {.forward_s = 1, .backward_input_s = 2, .backward_weight_s = 3, .update_s = 5});
  profile.overhead_s = 0.25;
  const Timeline timeline = simulate(profile, one_node_each(profile), Policy::one_f_one_b, 4);
  EXPECT_DOUBLE_EQ(timeline.step_s, 4 * (6 + 2 * 0.25) + 5);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), 0);
  EXPECT_DOUBLE_EQ(one_device_step_s(profile, 4), timeline.step_s);
}

TEST(Simulate, HalvesOfBackwardHaveTheirOwnTimes) {
  const Profile profile = chain(1, {.forward_s = 1, .backward_input_s = 2, .backward_weight_s = 4});
  const Schedule schedule = parse_schedule("microbatches 1\nrank 0: 0L0 0F0 0I0 0W0 0U\n", "text");
  const Timeline timeline = antichain::simulate(schedule, one_node_each(profile), profile, {});
  EXPECT_EQ(end_of(timeline, "0I0"), 3);
  EXPECT_EQ(end_of(timeline, "0W0"), 7);
}

TEST(Simulate, AWeightHalfOfItsOwnTakesWhatPartingCosts) {
  const Profile profile =
      chain(2, {.forward_s = 1, .backward_input_s = 2, .backward_weight_s = 4, .backward_parted_s = 0.5});
  const Plan plan = one_node_each(profile);
  const Schedule parted = make_schedule(profile, plan, policy("zb-h1"), 2);
  EXPECT_EQ(antichain::simulate(parted, plan, profile, {}).busy_s[0], 2 * 7.5);
  const Schedule whole = make_schedule(profile, plan, Policy::one_f_one_b, 2);
  EXPECT_EQ(antichain::simulate(whole, plan, profile, {}).busy_s[0], 2 * 7);
}

// Two stages, t_f = 1, t_b = 2, messages of 300 bytes at 100 bytes/s and 0.5 s latency: 3.5 s each, one at a
// time.
//   0F0 ends 1, 0F1 ends 2;    a(0) arrives 4.5, a(1) waits for the link: 8
//   1F0 5.5, 1B0 7.5, g(0) 11; 1F1 9, 1B1 11, g(1) posted 11 when the link is just free: 14.5
//   0B0 13, 0B1 16.5
TEST(Simulate, MessagesTakeTimeAndShareTheLinkInOrder) {
  const Profile profile = chain(2, {.forward_s = 1, .backward_input_s = 2, .output_bytes = 300});
  const Link link{.bytes_per_s = 100, .latency_s = 0.5};
  const Timeline timeline = simulate(profile, one_node_each(profile), Policy::one_f_one_b, 2, link);
  EXPECT_DOUBLE_EQ(end_of(timeline, "1R0:a2<0"), 4.5);
  EXPECT_DOUBLE_EQ(end_of(timeline, "1R1:a2<0"), 8);
  EXPECT_DOUBLE_EQ(end_of(timeline, "1B1"), 11);
  EXPECT_DOUBLE_EQ(end_of(timeline, "0R0:g2.3<1"), 11);
  EXPECT_DOUBLE_EQ(end_of(timeline, "0B0"), 13);
  EXPECT_DOUBLE_EQ(end_of(timeline, "0R1:g2.3<1"), 14.5);
  EXPECT_DOUBLE_EQ(timeline.step_s, 16.5);
  EXPECT_DOUBLE_EQ(timeline.busy_s[0], 6);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), 1 - 12 / 33.0);
}

// A skip from stage 0 to stage 2 goes straight there, on a link of its own, while stage 1 computes.
TEST(Simulate, ASkipDoesNotWaitForTheStageBetween) {
  Profile profile = empty_network();
  profile.nodes.push_back(node("image", Role::input, {}, false, {}));
  profile.nodes.push_back(node("stem", Role::compute, {0}, true, {.forward_s = 1, .output_bytes = 40}));
  profile.nodes.push_back(node("branch", Role::compute, {1}, true, {.forward_s = 10, .output_bytes = 10}));
  profile.nodes.push_back(node("loss", Role::loss, {1, 2}, true, {.forward_s = 1}));
  const Plan plan = plan_of(profile, {{1}, {2}, {3}});
  const Timeline timeline = simulate(profile, plan, Policy::forward_only, 1, {.bytes_per_s = 10});
  EXPECT_DOUBLE_EQ(end_of(timeline, "1R0:a1<0"), 5);   // 1 + 4
  EXPECT_DOUBLE_EQ(end_of(timeline, "2R0:a1<0"), 5);   // at the same time
  EXPECT_DOUBLE_EQ(end_of(timeline, "2R0:a2<1"), 16);  // 5 + 10 + 1
  EXPECT_DOUBLE_EQ(timeline.step_s, 17);
}

TEST(Simulate, NoRankIsBusyLongerThanTheStepAndOneDeviceIsTheSum) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 100; ++trial) {
    const Profile profile = random_network(random, 12);
    const Plan plan = random_plan(random, profile, 1 + trial % 4);
    const Timeline timeline =
        simulate(profile, plan, Policy::one_f_one_b, 4, {.bytes_per_s = 50, .latency_s = 0.1});
    double busy = 0;
    for (double b : timeline.busy_s) {
      busy += b;
      EXPECT_LE(b, timeline.step_s * (1 + rounding));
    }
    EXPECT_NEAR(busy, one_device_step_s(profile, 4), rounding * busy);
    EXPECT_GE(timeline.bubble_fraction(), -rounding);
  }
}

TEST(Simulate, RefusesAnInvalidSchedule) {
  const Profile profile = chain(1);
  const Schedule schedule = parse_schedule("microbatches 1\nrank 0: 0F0\n", "text");
  expect_error([&] { antichain::simulate(schedule, one_node_each(profile), profile, {}); },
               {"0L0", "missing"});
}

// Chain of two one-node stages under 1F1B with M = 4: in flight 2 and 1. Per node 100 bytes of output, 7 of
// weights and 4 of what the engine makes of them, 3 of stash; the image is empty.
TEST(PeakMemory, AddsUpByHand) {
  const NodeCost cost{
      .output_bytes = 100, .param_bytes = 7, .prepared_bytes = 4, .stash_bytes = 3, .keeps_output = true};
  const Profile profile = chain(2, cost);
  const Plan plan = one_node_each(profile);
  const auto bytes = peak_memory_bytes(make_schedule(profile, plan, Policy::one_f_one_b, 4), plan, profile);
  const int64_t first = 3 * 7 + 4 + 2 * 3 + 2 * 100  // weights, stash, output (kept and sent: max(2, 2))
                        + 2 * 100;                   // received gradient, one posted ahead
  const int64_t second = 3 * 7 + 4 + 1 * 3 +
                         1 * 100     // weights, stash, kept output (the loss needs no gradient sent)
                         + 2 * 100   // received activation: 1 in flight, one posted ahead
                         + 2 * 100;  // sent gradient: 2 slots
  EXPECT_EQ(bytes, (std::vector<int64_t>{first, second}));

  const auto evaluation =
      peak_memory_bytes(make_schedule(profile, plan, Policy::forward_only, 4), plan, profile);
  EXPECT_EQ(evaluation, (std::vector<int64_t>{7 + 4 + 4 * 100, 7 + 4 + 2 * 100 + 100}));
}

// Every formula counts it: the planner's, the search's and the simulator's.
TEST(PeakMemory, CountsWhatTheOptimiserKeeps) {
  const auto memory = [](std::optional<int64_t> slots) {
    const Profile profile =
        chain(2, {.forward_s = 1, .output_bytes = 100, .param_bytes = 8, .optimiser_bytes = slots});
    const Plan plan = plan_antichain(profile, {.stages = 2});
    return std::tuple(peak_memory_bytes(make_schedule(profile, plan, Policy::one_f_one_b, 4), plan, profile),
                      plan.stages[0].memory_bytes,
                      StageAdder(profile)(plan.stage_of(int(profile.nodes.size())), 2).stages[0].held_bytes);
  };
  const auto [by_step, planned, searched] = memory({});
  EXPECT_EQ(memory(8), std::tuple(by_step, planned, searched));
  for (const int64_t more : {-8, 8, 24})
    EXPECT_EQ(memory(8 + more), std::tuple(std::vector<int64_t>{by_step[0] + more, by_step[1] + more},
                                           planned + more, searched + more));
}

TEST(PeakMemory, PassingTensorsShareTheirMemory) {
  // Four nodes in a row on one stage, outputs not kept: at most two are alive at once in the forward (200),
  // in the backward the gradients of two neighbours (200).
  const Profile profile = chain(4, {.output_bytes = 100});
  const Plan plan = plan_of(profile, {{2, 3, 4, 5}});
  EXPECT_EQ(peak_memory_bytes(make_schedule(profile, plan, Policy::gpipe, 3), plan, profile)[0], 200);
}

TEST(PeakMemory, OneForwardOneBackwardNeedsLessThanGpipe) {
  const Profile profile = chain(4, {.output_bytes = 100, .stash_bytes = 50, .keeps_output = true});
  const Plan plan = one_node_each(profile);
  const auto lean = peak_memory_bytes(make_schedule(profile, plan, Policy::one_f_one_b, 16), plan, profile);
  const auto fat = peak_memory_bytes(make_schedule(profile, plan, Policy::gpipe, 16), plan, profile);
  for (int r = 0; r < 4; ++r) EXPECT_LT(lean[r], fat[r] / 2);
}

TEST(Draw, IsThisPicture) {
  const NodeCost cost{
      .forward_s = 1e-3, .backward_input_s = 1e-3, .backward_weight_s = 1e-3, .update_s = 1e-3};
  const Profile profile = chain(3, cost);
  // 6 micro-batch times of 3 ms and an update of 1 ms: 19 ms in 76 cells, four a millisecond.
  EXPECT_EQ(draw(simulate(profile, one_node_each(profile), Policy::one_f_one_b, 4), 3, 76 + 7 + 2),
            "rank 0 |000011112222................aaaaaaaa3333bbbbbbbb....cccccccc....dddddddd####|\n"
            "rank 1 |....00001111........aaaaaaaa2222bbbbbbbb3333cccccccc....dddddddd####........|\n"
            "rank 2 |........0000aaaaaaaa1111bbbbbbbb2222cccccccc3333dddddddd####................|\n"
            "       |0                  |5                  |10                 |15 ms\n"
            "       0-9 forward of micro-batch m mod 10   a-j its backward   # update   . idle\n");
}

TEST(Draw, FitsAnyWidthAndAnyTimeline) {
  const Profile profile = chain(8, {.forward_s = 0.017, .backward_input_s = 0.041});
  const Timeline timeline = simulate(profile, one_node_each(profile), Policy::one_f_one_b, 64);
  for (int width : {40, 80, 100, 131}) {
    std::istringstream lines(draw(timeline, 8, width));
    std::string line;
    for (int r = 0; r < 8; ++r) {
      ASSERT_TRUE(std::getline(lines, line));
      EXPECT_EQ(int(line.size()), width);
    }
    std::getline(lines, line);
    EXPECT_LE(int(line.size()), width);
    EXPECT_NE(line.find("ms"), std::string::npos);
  }
  EXPECT_NE(draw(Timeline{.busy_s = {0}}, 1, 50).find("rank 0 |....."),
            std::string::npos);  // nothing happened
}

TEST(Trace, IsJsonWithOneNamedTrackPerRank) {
  const Profile profile = chain(2, {.forward_s = 1e-3, .backward_input_s = 2e-3, .output_bytes = 100});
  const Timeline timeline =
      simulate(profile, one_node_each(profile), Policy::one_f_one_b, 2, {.bytes_per_s = 1e5, .latency_s = 0});
  const auto json = nlohmann::json::parse(to_chrome_trace(to_trace(timeline, profile), "a \"title\" \xff"));
  std::set<std::string> categories, tracks;
  size_t complete = 0, gradients = 0;
  for (const auto& e : json.at("traceEvents")) {
    if (e.at("name") == "thread_name") tracks.insert(e.at("args").at("name").get<std::string>());
    if (e.at("ph") != "X") continue;
    ++complete;
    categories.insert(e.at("cat").get<std::string>());
    if (e.at("args").at("action") == "1F0") {
      EXPECT_EQ(e.at("name"), "forward 0");
      EXPECT_EQ(e.at("args").at("stage"), 1);
      EXPECT_EQ(e.at("args").at("microbatch"), 0);
      EXPECT_EQ(e.at("tid"), 1);
      EXPECT_NEAR(e.at("ts").get<double>(), 2000, 1e-6);  // µs: 1 ms of forward, 1 ms of message
      EXPECT_NEAR(e.at("dur").get<double>(), 1000, 1e-6);
    }
    if (e.at("name") == "receive gradient 1") {
      const nlohmann::json expected = {{"action", e.at("args").at("action")},
                                       {"stage", 0},
                                       {"microbatch", 1},
                                       {"from rank", 1},
                                       {"tensor", "n1"},
                                       {"bytes", 100}};
      EXPECT_EQ(e.at("args"), expected);
      ++gradients;
    }
  }
  EXPECT_EQ(complete, timeline.events.size());
  EXPECT_EQ(gradients, 1u);
  EXPECT_EQ(tracks, (std::set<std::string>{"rank 0", "rank 1"}));
  EXPECT_EQ(categories, (std::set<std::string>{"load", "recv", "forward", "backward", "send", "step"}));
}

TEST(Trace, NamesTheStageWhereARankHasSeveral) {
  const ChainOfRanks of(policy("zb-v"), 2);
  const Schedule schedule = make_schedule(of.profile, of.plan, policy("zb-v"), 4);
  std::set<std::string> names;
  for (const TraceEvent& e : to_trace(antichain::simulate(schedule, of.plan, of.profile, {}), of.profile))
    names.insert(e.label);
  for (const char* name : {"forward 0, stage 0", "forward 0, stage 3", "update, stage 2",
                           "send gradient 1, stage 3", "weight gradients 3, stage 1"})
    EXPECT_EQ(names.count(name), 1u) << name;
}

}  // namespace
}  // namespace antichain::test
