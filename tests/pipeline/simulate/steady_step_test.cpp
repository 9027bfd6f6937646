// The period of steps that overlap is compared with steps played one after the other, and with figures worked
// out by hand.
#include "pipeline/simulate/steady_step.h"

#include <gtest/gtest.h>

#include <random>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/simulate/rounding.h"

namespace antichain::test {
namespace {

Timeline overlapped(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
                    const Link& link = {}) {
  return simulate(make_schedule(profile, plan, policy, microbatches), plan, profile, one_link(link),
                  Steps::overlapped);
}

TEST(SteadyStep, ClocksThatAdvanceAlike) {
  double now_s = 0;
  EXPECT_DOUBLE_EQ(steady_period_s([&] {
                     now_s += 3;
                     return std::vector<double>{now_s, now_s + 1, 7};  // the last is of an unused link
                   }),
                   3);
}

// These clocks repeat only every third step. Steps are 1, 2 and 6 seconds long, in turn.
TEST(SteadyStep, ACycleOfSteps) {
  double now_s = 0;
  int step = 0;
  const double lengths[] = {1, 2, 6};
  EXPECT_DOUBLE_EQ(steady_period_s([&] {
                     now_s += lengths[step++ % 3];
                     return std::vector<double>{now_s, 3. * step};
                   }),
                   3);
}

// A clock that runs ahead of the others has no part in their period.
TEST(SteadyStep, ARankThatWaitsForNoOther) {
  double fast_s = 0, slow_s = 0;
  EXPECT_DOUBLE_EQ(steady_period_s([&] {
                     fast_s += 1, slow_s += 2;
                     return std::vector<double>{fast_s, slow_s};
                   }),
                   2);
}

TEST(SteadyStep, OneRankHasNothingToOverlap) {
  const Profile profile = chain(3);
  const Plan plan = plan_of(profile, {{2, 3, 4}});
  const Timeline timeline = overlapped(profile, plan, Policy::one_f_one_b, 4);
  EXPECT_DOUBLE_EQ(timeline.period_s, timeline.step_s);
  EXPECT_DOUBLE_EQ(timeline.period_s, 4 * 9);
}

// F = I = W = 1 on two ranks, M = 2, zb-h1: rank 0 does F0 F1 . I0 I1 W0 W1 (rank 1 ends I0 at 3 and I1 at 5)
// and rank 1 idles for one F at the beginning of a step. Both end at 7 or earlier; rank 1 waits for the next
// F of rank 0 while that one works, so only the fill is left of the bubble.
TEST(SteadyStep, IsShorterThanAStepWhereTheFillHides) {
  const Profile profile = chain(4);
  for (const char* name : {"zb-h1", "zb-h2", "gpipe", "1f1b"}) {
    const Timeline timeline = overlapped(profile, one_node_each(profile), policy(name), 8);
    EXPECT_LE(timeline.period_s, timeline.step_s) << name;
    EXPECT_GE(timeline.period_s, 8 * 3) << name;
  }
  const Timeline full = overlapped(profile, one_node_each(profile), policy("zb-h2"), 8);
  EXPECT_LT(full.period_s, full.step_s);
}

// Plays a schedule many times over as one long schedule, and looks at how far the steps are apart.
double period_of_a_long_schedule_s(const Profile& profile, const Plan& plan, const Schedule& schedule,
                                   const Cluster& cluster, int steps) {
  const Timeline timeline = simulate(schedule, plan, profile, cluster);
  std::vector<double> now_s(schedule.ranks.size(), 0);
  std::vector<std::vector<double>> free_s(now_s.size(), std::vector<double>(now_s.size(), 0));
  std::vector<double> ends_s;
  const Partners partners = match_messages(schedule);
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<double>> there_s;
    for (const auto& actions : schedule.ranks) there_s.emplace_back(actions.size(), 0);
    size_t event = 0;
    std::vector<std::vector<double>> seconds;  // of each action, from the step that was simulated alone
    for (const auto& actions : schedule.ranks) {
      seconds.emplace_back();
      for (const Action& a : actions) {
        const Event& e = timeline.events[event++];
        seconds.back().push_back(a.verb == Verb::recv ? 0 : e.end_s - e.start_s);
      }
    }
    walk(schedule, partners, [&](int r, int i) {
      const Action& a = schedule.ranks[size_t(r)][size_t(i)];
      if (a.verb == Verb::recv) now_s[size_t(r)] = std::max(now_s[size_t(r)], there_s[size_t(r)][size_t(i)]);
      if (a.verb == Verb::send) {
        double& free = free_s[size_t(r)][size_t(a.peer)];
        free = std::max(free, now_s[size_t(r)]) +
               cluster.link(r, a.peer).seconds(profile.nodes[size_t(a.message.tensor)].cost.output_bytes);
        there_s[size_t(a.peer)][size_t(partners.of[size_t(r)][size_t(i)])] = free;
      }
      now_s[size_t(r)] += seconds[size_t(r)][size_t(i)];
    });
    ends_s.push_back(*std::max_element(now_s.begin(), now_s.end()));
  }
  // The cycle has up to twelve steps and comes many times over.
  return (ends_s.back() - ends_s[ends_s.size() - 1 - 120]) / 120;
}

TEST(SteadyStep, EqualsManyStepsOneAfterTheOther) {
  std::mt19937 random(11);
  int shorter = 0;
  for (int i = 0; i < 60; ++i) {
    Profile profile = random_network(random, 9);
    const int stages = 2 + int(random() % 3), microbatches = 1 + int(random() % 6);
    Plan plan = random_plan(random, profile, stages);
    for (size_t s = 0; s < plan.stages.size(); ++s) plan.stages[s].ranks = {int(s)};
    const Link link{.bytes_per_s = random() % 2 ? 0 : 300., .latency_s = double(random() % 3)};
    const Policy policy = random() % 2 ? antichain::policy("zb-h1") : Policy::one_f_one_b;
    const Schedule schedule = make_schedule(profile, plan, policy, microbatches);
    const Timeline timeline = simulate(schedule, plan, profile, one_link(link), Steps::overlapped);
    const double expected_s = period_of_a_long_schedule_s(profile, plan, schedule, one_link(link), 300);
    EXPECT_NEAR(timeline.period_s, expected_s, 1e-6 * expected_s) << i;
    EXPECT_LE(timeline.period_s, timeline.step_s) << i;
    shorter += timeline.period_s < timeline.step_s * (1 - 1e-9);
    const Pace both = pace(profile, plan, policy, microbatches, one_link(link), Steps::overlapped);
    EXPECT_DOUBLE_EQ(both.period_s, timeline.period_s) << i;
    EXPECT_DOUBLE_EQ(both.step_s, timeline.step_s) << i;
  }
  EXPECT_GT(shorter, 10) << "overlapping must matter in some of them";
}

TEST(SteadyStep, WithoutContentionTheOrderOfMessagesHasTheSamePeriod) {
  const Profile profile = chain(4, {.forward_s = 1, .backward_input_s = 2, .output_bytes = 10});
  const Plan plan = one_node_each(profile);
  const Link link{.bytes_per_s = 100};
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 6);
  const Program program = compile(schedule, profile, plan);
  const auto order = message_order(program, plan, profile, one_link(link));
  const auto own_link = [](int, int, Flow) { return no_lane; };
  const Timeline in_order =
      simulate_in_order(program, plan, profile, one_link(link), order, own_link, Steps::overlapped);
  const Timeline free = simulate(schedule, plan, profile, one_link(link), Steps::overlapped);
  EXPECT_NEAR(in_order.period_s, free.period_s, rounding * free.period_s);
  EXPECT_NEAR(in_order.step_s, free.step_s, rounding * free.step_s);
}

TEST(SteadyStep, OnePeriodHoldsAllWorkOfAStep) {
  const Profile profile = chain(4);
  const Timeline timeline = overlapped(profile, one_node_each(profile), policy("zb-h2"), 8);
  ASSERT_LT(timeline.period_s, timeline.length_s());
  const auto work_s = [](const Timeline& of) {
    double sum_s = 0;
    for (const Event& e : of.events)
      if (computes(e.action.verb)) sum_s += e.end_s - e.start_s;
    return sum_s;
  };
  const Timeline folded = one_period(timeline);
  EXPECT_NEAR(work_s(folded), work_s(timeline), rounding);
  for (const Event& e : folded.events) {
    EXPECT_GE(e.start_s, 0);
    EXPECT_LE(e.end_s, timeline.period_s * (1 + rounding));
  }
  const Timeline three = repeated(timeline, 3);
  EXPECT_NEAR(work_s(three), 3 * work_s(timeline), rounding);
  EXPECT_NEAR(three.length_s(), timeline.length_s() + 2 * timeline.period_s, rounding);
  for (size_t i = 1; i < three.events.size(); ++i) {  // no rank does two things at once
    if (three.events[i].rank != three.events[i - 1].rank) continue;
    EXPECT_GE(three.events[i].start_s, three.events[i - 1].end_s - 1e-9);
  }
}

}  // namespace
}  // namespace antichain::test
