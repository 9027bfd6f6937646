// Orders are searched for the plan at hand. They are compared with steps that are proved smallest, with the
// published settings, with an exact search on small random cases, and with the named schedules.
#include "pipeline/planning/order_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "pipeline/planning/greedy_order.h"
#include "pipeline/planning/order_bound.h"
#include "pipeline/planning/planning.h"
#include "pipeline/planning/schedule_choice.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

struct Times {
  double forward = 1, input = 1, weight = 1;
};

Profile network_of(const std::vector<Times>& stages) {
  Profile profile = chain(int(stages.size()));
  for (size_t s = 0; s < stages.size(); ++s)
    profile.nodes[s + 2].cost = {.forward_s = stages[s].forward,
                                 .backward_input_s = stages[s].input,
                                 .backward_weight_s = stages[s].weight};
  return profile;
}

PlannedOrder order_of(const Profile& profile, int microbatches, const std::vector<int>& in_flight,
                      Steps steps = Steps::apart) {
  const Plan plan = one_node_each(profile);
  const PlannedOrder planned = plan_order(profile, plan, {}, microbatches, in_flight, {.steps = steps});
  validate(planned.schedule, profile, plan);
  const std::vector<double> peaks = peak_in_flight(planned.schedule);
  for (size_t r = 0; r < peaks.size(); ++r) EXPECT_LE(peaks[r], in_flight[r]) << "rank " << r;
  EXPECT_LE(planned.bound_s, planned.pace_s());
  return planned;
}

// These steps come from an exact solver: four stages, eight micro-batches, F = I = W = 1.
TEST(OrderSearch, FindsTheProvedSmallestStepsOfEqualStages) {
  const Profile profile = network_of(std::vector<Times>(4));
  EXPECT_DOUBLE_EQ(order_of(profile, 8, {4, 3, 2, 1}).step_s, 30);
  for (const int limit : {4, 7, 8}) {
    const PlannedOrder planned = order_of(profile, 8, std::vector<int>(4, limit));
    EXPECT_DOUBLE_EQ(planned.step_s, 27) << limit;
    EXPECT_TRUE(planned.proved()) << limit;
  }
}

TEST(OrderSearch, FindsTheProvedSmallestStepsOfUnevenStages) {
  const Profile profile = network_of({{32, 36, 36}, {32, 29, 29}, {31, 34, 34}, {33, 31, 31}});
  EXPECT_DOUBLE_EQ(order_of(profile, 8, {4, 3, 2, 1}).step_s, 960);
  EXPECT_DOUBLE_EQ(order_of(profile, 8, {4, 4, 4, 4}).step_s, 926);
  EXPECT_DOUBLE_EQ(order_of(profile, 8, {7, 7, 7, 7}).step_s, 858);
}

// An exact solver says that no bubble is left with seven in flight, or all, where stages are equal.
TEST(OrderSearch, FindsTheProvedSmallestPeriods) {
  const PlannedOrder equal = order_of(network_of(std::vector<Times>(4)), 8, {7, 7, 7, 7}, Steps::overlapped);
  EXPECT_DOUBLE_EQ(equal.period_s, 24);
  EXPECT_TRUE(equal.proved());
  const Profile profile = network_of({{32, 36, 36}, {32, 29, 29}, {31, 34, 34}, {33, 31, 31}});
  const PlannedOrder uneven = order_of(profile, 8, {7, 7, 7, 7}, Steps::overlapped);
  EXPECT_DOUBLE_EQ(uneven.period_s, 832);
  EXPECT_TRUE(uneven.proved());
}

// The rates are of Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024. Its search has a limit of memory
// too: that of p micro-batches for ZB-1p and of 2p for ZB-2p. A rate is idle time over time of a rank's own
// span, which is no longer than the period. Times are microseconds, and a message takes c.
//
// The authors count less for a micro-batch between its I and its W than before. We count all of it until W
// has ended, and then no order with 2p in flight has the rates of ZB-2p: the bound of a span rules it out.
// On the last rank (M − 2p) W come before the last F, and rank 0 waits for that rank's last gradient.
// Without a limit the bound is no longer than the published spans, so it is the limit that rules them out.
TEST(OrderSearch, IsAsGoodAsThePublishedSearch) {
  struct Setting {
    int p, microbatches;
    Times times;
    double c, zb_1p, zb_2p;
  };
  constexpr Setting settings[] = {
      {8, 24, {18522, 18086, 9337}, 601, .1585, .0433},  {8, 32, {29802, 29428, 19530}, 577, .1045, .0022},
      {8, 64, {29935, 29621, 19388}, 535, .0554, .0010}, {16, 48, {11347, 11248, 8132}, 377, .1397, .0066},
      {32, 96, {10419, 10207, 7715}, 408, .1421, .0038}, {32, 128, {10408, 10204, 7703}, 408, .1106, .0029}};
  for (const Setting& at : settings) {
    const Profile profile = network_of(std::vector<Times>(size_t(at.p), at.times));
    const Plan plan = one_node_each(profile);
    const Cluster cluster = one_link({.latency_s = at.c});
    const double busy_s = at.microbatches * (at.times.forward + at.times.input + at.times.weight);
    const std::vector<int> once(size_t(at.p), at.p), twice(size_t(at.p), 2 * at.p);
    const PlannedOrder planned = plan_order(profile, plan, cluster, at.microbatches, once,
                                            {.steps = Steps::overlapped, .effort = 0.02});
    EXPECT_LE(1 - busy_s / planned.period_s, at.zb_1p + 5e-5) << "rounded to four digits";
    const Timeline alone = simulate(planned.schedule, plan, profile, cluster);
    EXPECT_LE(1 - busy_s / alone.span_s(), at.zb_1p + 5e-5) << "by the span of a step with a flush, too";
    const OrderEstimate estimate(profile, plan, cluster, at.microbatches);
    EXPECT_GT(1 - busy_s / order_bound_s(estimate, twice, Steps::overlapped), at.zb_2p + 5e-5);
    const std::vector<int> all(size_t(at.p), at.microbatches);
    EXPECT_LE(1 - busy_s / order_bound_s(estimate, all, Steps::overlapped), at.zb_2p + 5e-5);
  }
}

// Calls visit(order) for every order of one rank that keeps the limits.
void each_order(int stage, int microbatches, int in_flight, RankOrder& order, int f, int i, int w,
                const std::function<void(const RankOrder&)>& visit) {
  if (w == microbatches) return visit(order);
  const auto with = [&](Verb verb, int m, int f_next, int i_next, int w_next) {
    order.push_back({verb, stage, m});
    each_order(stage, microbatches, in_flight, order, f_next, i_next, w_next, visit);
    order.pop_back();
  };
  if (f < microbatches && f - w < in_flight) with(Verb::forward, f, f + 1, i, w);
  if (i < f) with(Verb::backward_input, i, f, i + 1, w);
  if (i < f && w == i) with(Verb::backward, i, f, i + 1, w + 1);
  if (w < i) with(Verb::backward_weight, w, f, i, w + 1);
}

double exact_pace_s(OrderEstimate& estimate, const std::vector<int>& in_flight, Steps steps) {
  std::vector<std::vector<RankOrder>> choices(size_t(estimate.stages()));
  for (size_t s = 0; s < choices.size(); ++s) {
    RankOrder order;
    each_order(int(s), estimate.microbatches(), in_flight[s], order, 0, 0, 0,
               [&](const RankOrder& found) { choices[s].push_back(found); });
  }
  double best_s = std::numeric_limits<double>::infinity();
  RankOrders orders(choices.size());
  const std::function<void(size_t)> choose = [&](size_t s) {
    if (s == choices.size()) {
      best_s = std::min(best_s, estimate.pace_s(orders, steps));
      return;
    }
    for (const RankOrder& order : choices[s]) orders[s] = order, choose(s + 1);
  };
  choose(0);
  return best_s;
}

struct RandomCase {
  explicit RandomCase(unsigned seed) : random(seed) {
    const auto pick = [&](int from, int to) { return from + int(random() % unsigned(to - from + 1)); };
    static constexpr std::pair<int, int> sizes[] = {{2, 2}, {2, 3}, {2, 4}, {3, 2}, {3, 3}, {4, 2}};
    const auto [stages, M] = sizes[seed % std::size(sizes)];
    microbatches = M;
    std::vector<Times> times;
    for (int s = 0; s < stages; ++s)
      times.push_back({double(pick(1, 9)), double(pick(1, 9)), double(pick(0, 9))});
    profile = network_of(times);
    for (ProfileNode& node : profile.nodes) node.cost.output_bytes = 10;
    profile.overhead_s = 0.25 * pick(0, 2);
    for (int s = 0; s < stages; ++s) in_flight.push_back(pick(1, M));
    cluster = one_link(seed % 3 == 0 ? Link{} : Link{.bytes_per_s = 10, .latency_s = 0.5 * pick(0, 3)});
  }
  std::mt19937 random;
  Profile profile;
  int microbatches = 1;
  std::vector<int> in_flight;
  Cluster cluster;
};

void expect_exact(Steps steps) {
  int proved = 0, equal = 0, cases = 0;
  for (unsigned seed = 0; seed < 36; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c(seed);
    const Plan plan = one_node_each(c.profile);
    OrderEstimate estimate(c.profile, plan, c.cluster, c.microbatches);
    const double exact_s = exact_pace_s(estimate, c.in_flight, steps);
    PlannedOrder planned;
    try {
      planned = plan_order(c.profile, plan, c.cluster, c.microbatches, c.in_flight, {.steps = steps});
    } catch (const Error&) {
      EXPECT_EQ(exact_s, std::numeric_limits<double>::infinity());
      continue;
    }
    ++cases;
    validate(planned.schedule, c.profile, plan);
    EXPECT_GE(planned.pace_s(), exact_s * (1 - 1e-9));
    EXPECT_LE(planned.bound_s, exact_s * (1 + 1e-9)) << "no order is below the bound";
    if (planned.proved()) {
      EXPECT_NEAR(planned.pace_s(), exact_s, 1e-9);
    }
    proved += planned.proved();
    equal += planned.pace_s() <= exact_s * (1 + 1e-9);
  }
  EXPECT_GT(proved, cases / 3);
  EXPECT_EQ(equal, cases) << "it finds the best order of so small a case";
}

TEST(OrderSearch, EqualsAnExactSearchOfStepsOnSmallRandomCases) { expect_exact(Steps::apart); }
TEST(OrderSearch, EqualsAnExactSearchOfPeriodsOnSmallRandomCases) { expect_exact(Steps::overlapped); }

// Returns the orders of a schedule, by the estimate's numbers of ranks.
RankOrders orders_of(const Schedule& schedule, const OrderEstimate& estimate) {
  RankOrders orders(size_t(estimate.ranks()));
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions)
      if (computes(a.verb))
        orders[size_t(estimate.rank_of(a.stage))].push_back({a.verb, a.stage, a.microbatch});
  return orders;
}

// Rank 0 has two forwards of stage 0 to do before stage 3 can begin, at 3, and then 10 s of work.
TEST(OrderSearch, TheBoundCountsThatARankWaitsForItsSecondStage) {
  const Profile profile = network_of(std::vector<Times>(4));
  Plan plan = one_node_each(profile);
  for (size_t s = 0; s < 4; ++s) plan.stages[s].ranks = {s == 0 || s == 3 ? 0 : 1};
  const OrderEstimate estimate(profile, plan, {}, 2);
  EXPECT_NEAR(order_bound_s(estimate, {2, 2}, Steps::overlapped), 13, 1e-9);
}

// What a greedy order says of itself has a thousandth of a mean in it. Where links are free, no period is
// longer than the longest span of a rank.
TEST(GreedyOrder, TakesWhatTheEstimateOfItsOrderSays) {
  std::mt19937 random(5);
  GreedyOrder greedy;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomCase c(seed);
    Plan plan = one_node_each(c.profile);
    if (seed % 2 == 0)
      for (PlanStage& stage : plan.stages) stage.ranks.front() /= 2;  // two neighbours a rank
    c.profile.overhead_s = 0;                                         // it parts every backward
    OrderEstimate estimate(c.profile, plan, c.cluster, c.microbatches);
    const InFlightLimits limits{.takes = std::vector<int64_t>(size_t(estimate.stages()), 1),
                                .most = std::vector<int64_t>(size_t(estimate.ranks()), 2 + int64_t(seed % 3)),
                                .of_each_stage = std::vector<bool>(size_t(estimate.ranks()), false)};
    DispatchingRule rule = even_rule(estimate, seed % 3 == 0, 0.5 * (seed % 4));
    if (seed % 5 == 0) std::shuffle(rule.forward_turn.begin(), rule.forward_turn.end(), random);
    ASSERT_TRUE(greedy.play(estimate, limits, rule));
    const RankOrders orders = greedy.orders();
    for (size_t r = 0; r < orders.size(); ++r) EXPECT_TRUE(limits.keep(int(r), orders[r]));
    const double step_s = estimate.step_s(orders);
    EXPECT_GE(greedy.seconds(Steps::apart), step_s);
    EXPECT_LE(greedy.seconds(Steps::apart), step_s * 1.0011);
    if (c.cluster.links_are_free()) {
      EXPECT_GE(greedy.seconds(Steps::overlapped), estimate.period_s(orders) * (1 - 1e-9));
    }
  }
}

TEST(OrderSearch, TheEstimateIsTheSimulators) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    const int ranks = 1 + int(random() % 6);
    const Profile profile = random_network(random, 2 * ranks + 3 + int(random() % 16));
    const int M = 1 + int(random() % 9);
    const Cluster cluster =
        trial % 4 == 0 ? Cluster() : one_link({.bytes_per_s = 50. * double(random() % 3), .latency_s = 0.1});
    for (const Policy& policy : policies()) {
      if (!policy.trains || fitting(policy, M, ranks) != M) continue;
      const Plan plan = for_policy(policy, random())(profile, ranks);
      OrderEstimate estimate(profile, plan, cluster, M);
      const Schedule schedule = make_schedule(profile, plan, policy, M);
      const RankOrders orders = orders_of(schedule, estimate);
      const Timeline timeline = simulate(schedule, plan, profile, cluster, Steps::overlapped);
      // Messages to two stages of a rank may be posted in turn.
      const bool several = chunks_of(policy) > 1, close = several && !cluster.links_are_free();
      const double tolerance = close ? 0.3 : 1e-9;
      if (policy.name == "dualpipe-v") continue;  // its fused pairs wait for two inputs
      EXPECT_NEAR(estimate.step_s(orders), timeline.step_s, tolerance * timeline.step_s) << policy.name;
      EXPECT_NEAR(estimate.period_s(orders), timeline.period_s, (close ? 0.3 : 1e-6) * timeline.period_s)
          << policy.name;
      const std::vector<int> all(size_t(ranks), M);
      EXPECT_LE(order_bound_s(estimate, all), timeline.step_s * (1 + 1e-9));
      EXPECT_LE(order_bound_s(estimate, all, Steps::overlapped), timeline.period_s * (1 + 1e-9));
    }
  }
}

TEST(OrderSearch, IsNeverWorseThanANamedScheduleThatFits) {
  std::mt19937 random(4);
  int better = 0;
  for (int trial = 0; trial < 12; ++trial) {
    SCOPED_TRACE(trial);
    Profile profile = random_network(random, 10 + int(random() % 10));
    for (ProfileNode& node : profile.nodes) node.cost.backward_weight_s = 0.5 * double(random() % 4);
    const Plan plan = random_plan(random, profile, 3);
    const int M = 4 + int(random() % 6);
    const PlannedOrder planned = plan_order(profile, plan, {}, M, default_in_flight(profile, plan, {}, M));
    const double named_s = std::min(step_s(profile, plan, policy("zb-h1"), M, {}),
                                    step_s(profile, plan, Policy::one_f_one_b, M, {}));
    EXPECT_LE(planned.step_s, named_s * (1 + 1e-12));
    better += planned.step_s < named_s * (1 - 1e-9);
  }
  EXPECT_GT(better, 3);
}

// A search starts from the named orders that keep the limits, and has what zb-v needs: as many micro-batches
// of a whole rank as there are ranks.
TEST(OrderSearch, OrdersTwoStagesARank) {
  std::mt19937 random(5);
  int better = 0;
  for (int trial = 0; trial < 8; ++trial) {
    SCOPED_TRACE(trial);
    const int ranks = 2 + trial % 3, M = 2 * ranks;
    const Policy& policy = antichain::policy(trial % 2 == 0 ? "zb-v" : "interleaved");
    Profile profile = random_network(random, 4 * ranks);
    for (ProfileNode& node : profile.nodes) node.cost.stash_bytes = 1 + int(random() % 9);
    const Plan plan = for_policy(policy, random())(profile, ranks);
    const Cluster cluster = one_link({.bytes_per_s = 2000, .latency_s = 0.01});
    const std::vector<int> in_flight(size_t(ranks), M);
    const PlannedOrder planned = plan_order(profile, plan, cluster, M, in_flight, {.effort = 0.1});
    validate(planned.schedule, profile, plan);
    EXPECT_LE(planned.bound_s, planned.step_s);
    const double named_s = step_s(profile, plan, policy, M, cluster);
    EXPECT_LE(planned.step_s, named_s * (1 + 1e-9));
    better += planned.step_s < named_s * (1 - 1e-6);
    // Half of what that order has in flight, at most.
    const std::vector<int> half(size_t(ranks), std::max(1, ranks / 2));
    const PlannedOrder tight = plan_order(profile, plan, cluster, M, half, {.effort = 0.1});
    for (const double peak : peak_in_flight(tight.schedule)) EXPECT_LE(peak, half.front());
  }
  EXPECT_GT(better, 3);
}

// Where devices have a limit of memory, each stage's micro-batches count by their bytes, in buffers of its
// own.
TEST(OrderSearch, TwoStagesOfARankShareItsMemory) {
  Profile profile = chain(4);
  for (size_t n = 2; n < 6; ++n) profile.nodes[n].cost.stash_bytes = n == 2 ? 70 : 10;
  const Plan plan = plan_of(profile, {{2}, {3}, {4}, {5}}, {0, 1, 1, 0});
  for (const int64_t bytes : {80, 150, 160, 640}) {
    const Cluster cluster = equal_devices(2, {}, bytes);
    const PlannedOrder planned =
        plan_order(profile, plan, cluster, 8, default_in_flight(profile, plan, cluster, 8), {.effort = 0.1});
    const InFlight in_flight = in_flight_of(planned.schedule.ranks);
    const auto of_stage = [&](int stage) {
      return in_flight({.microbatches = 8, .devices = 4, .devices_left = 4 - stage});
    };
    EXPECT_LE(70 * of_stage(0) + 10 * of_stage(3), bytes);
  }
}

// Named schedules need what they need. An order of `auto` may have less in flight, down to one micro-batch.
TEST(ScheduleChoice, AutoFitsWhatItNamesAndIsNeverSlowerThanANamedSchedule) {
  std::mt19937 random(6);
  const ScheduleChoice choice{.name = std::string(planned_order), .two_stages = true};
  Profile profile = random_network(random, 6);
  for (ProfileNode& node : profile.nodes) node.cost.stash_bytes = 1 + int64_t(random() % 50);
  PlanOptions options{.stages = 2, .objective = Objective::makespan, .microbatches = 3};
  options.cluster = equal_devices(2, {}, 1);
  int64_t least = 0;
  try {
    choice.plan(profile, options, Method::antichain);
  } catch (const Error& error) {
    const std::string text = error.what(), before = " do is ";
    least = std::stoll(text.substr(text.find(before) + before.size()));
  }
  int others = 0;
  for (const double times : {1., 2.5}) {
    options.cluster = equal_devices(2, {}, int64_t(double(least) * times));
    const Plan plan = choice.plan(profile, options, Method::antichain);
    EXPECT_EQ(choice.judge(profile, plan, options).step_s, plan.step_s);
    EXPECT_LE(std::ranges::max(peak_memory_bytes(choice.schedule(profile, plan, options), plan, profile)),
              options.cluster.devices[0].memory_bytes);
    for (const char* name : {"1f1b", "zb-h1", "v-min"}) {
      PlanOptions by = options;
      by.chunks = default_chunks(policy(name).placement);
      try {
        const Plan named = ScheduleChoice{.name = name}.plan(profile, by, Method::antichain);
        EXPECT_LE(plan.step_s, named.step_s * (1 + 1e-9)) << name;
        ++others;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_GT(others, 0);
}

// Auto takes two stages a rank where that is faster, and is never slower than a named schedule that keeps the
// same limits.
TEST(ScheduleChoice, AutoMayGiveARankTwoStages) {
  const Profile profile = chain(18);
  const PlanOptions options{.stages = 3, .objective = Objective::makespan, .microbatches = 3};
  ScheduleChoice choice{.name = std::string(planned_order)};
  const double one_s = choice.plan(profile, options, Method::antichain).step_s;
  choice.two_stages = true;
  const Plan plan = choice.plan(profile, options, Method::antichain);
  const Schedule schedule = choice.schedule(profile, plan, options);
  validate(schedule, profile, plan);
  EXPECT_TRUE(has_several_stages_a_rank(plan));
  EXPECT_DOUBLE_EQ(plan.step_s, simulate(schedule, plan, profile, {}).step_s);
  EXPECT_LE(plan.lower_bound_s, plan.step_s);
  EXPECT_LT(plan.step_s, one_s);
  EXPECT_EQ(choice.judge(profile, plan, options).step_s, plan.step_s);
  for (const char* name : {"zb-h1", "interleaved", "zb-v"}) {
    PlanOptions by = options;
    by.chunks = chunks_of(policy(name));
    const Plan named = plan_network(profile, by, Method::antichain, policy(name));
    EXPECT_LE(plan.step_s, named.step_s * (1 + 1e-9)) << name;
  }
  EXPECT_LE(plan.step_s, choice.glance(profile, options, 60)->order.step_s * (1 + 1e-9));
}

TEST(OrderSearch, MemoryLimitsWhatIsInFlight) {
  Profile profile = chain(3, {.forward_s = 1, .backward_input_s = 1, .param_bytes = 100, .stash_bytes = 50});
  const Plan plan = one_node_each(profile);
  const auto limits = [&](int64_t bytes, int microbatches) {
    return default_in_flight(profile, plan, equal_devices(3, {}, bytes), microbatches);
  };
  EXPECT_EQ(limits(0, 8), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(limits(0, 2), (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(limits(300 + 5 * 50, 8), (std::vector<int>{5, 5, 5}))
      << "weights, gradients, momentum; five stashes";
  EXPECT_EQ(limits(100, 8), (std::vector<int>{1, 1, 1}));
}

TEST(ScheduleChoice, CutsForOneFOneBWhereNothingElseFits) {
  const Profile profile = chain(4, {.forward_s = 1, .backward_input_s = 1, .stash_bytes = 100});
  PlanOptions options{.stages = 4, .objective = Objective::makespan, .microbatches = 8};
  options.cluster.devices = {
      {.memory_bytes = 400}, {.memory_bytes = 300}, {.memory_bytes = 200}, {.memory_bytes = 100}};
  const ScheduleChoice choice{.name = std::string(planned_order)};
  expect_error([&] { plan_network(profile, options, Method::antichain, choice.policy()); }, {""});
  const Plan plan = choice.plan(profile, options, Method::antichain);
  EXPECT_EQ(choice.limits(profile, plan, options), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(peak_in_flight(choice.schedule(profile, plan, options)), (std::vector<double>{4, 3, 2, 1}));
}

TEST(OrderSearch, IsTheSameEveryTime) {
  const Profile profile = network_of({{3, 4, 2}, {5, 3, 3}, {4, 4, 1}});
  EXPECT_EQ(order_of(profile, 6, {3, 3, 3}).schedule.ranks, order_of(profile, 6, {3, 3, 3}).schedule.ranks);
}

TEST(OrderSearch, AMemoAnswersWhatWasSearchedBefore) {
  const Profile profile = network_of({{3, 4, 2}, {5, 3, 3}, {4, 4, 1}});
  const Plan plan = one_node_each(profile);
  const std::vector<int> in_flight = {3, 3, 3};
  OrderMemo memo;
  const PlannedOrder first = plan_order(profile, plan, {}, 6, in_flight, {.memo = &memo});
  const OrderMemo::Asked asked{.times = pipeline_times(profile, plan, {}, 6), .most_in_flight = {3, 3, 3}};
  ASSERT_NE(memo.find(asked), nullptr);
  EXPECT_EQ(*memo.find(asked), first.orders);
  const PlannedOrder again = plan_order(profile, plan, {}, 6, in_flight, {.memo = &memo});
  EXPECT_EQ(again.orders, first.orders);
  EXPECT_EQ(again.step_s, first.step_s);
  EXPECT_EQ(again.bound_s, first.bound_s);
  OrderMemo::Asked other = asked;
  other.most_in_flight[0] = 2;
  EXPECT_EQ(memo.find(other), nullptr);
}

TEST(OrderSearch, RefusesWhatItCantOrder) {
  const Profile profile = chain(2);
  const Plan plan = one_node_each(profile);
  expect_error([&] { plan_order(profile, plan, {}, 4, {0, 1}); }, {"at least one micro-batch"});
  expect_error([&] { plan_order(profile, replicated(plan, {2, 1}), {}, 4, {1, 1, 1}); }, {"no replicas"});
}

}  // namespace
}  // namespace antichain::test
