// The order of exchanges is carried out by a stand-in with rendezvous semantics, for all numbers of stages up
// to 8: nobody waits forever, and every send meets its own receive. Orders made otherwise are found stuck.
#include "pipeline/simulate/message_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "layers/cpu/backend.h"
#include "models/model.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/schedule/policy.h"
#include "tests/expect_error.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/simulate/lane_rendezvous.h"

namespace antichain::test {
namespace {

bool is_exchange(const Action& a) {
  return a.verb == Verb::send || a.verb == Verb::recv || a.verb == Verb::reduce;
}

// Cuts every backward into two halves, and puts the weight half of a rank's n-th micro-batch behind the input
// half of its (n + delay)-th, as zero-bubble schedules have it (Qi et al., "Zero Bubble Pipeline
// Parallelism", ICLR 2024).
Schedule with_late_weights(Schedule schedule, int delay) {
  for (auto& actions : schedule.ranks) {
    std::vector<Action> all, waiting;
    for (Action a : actions) {
      const bool last = a.verb == Verb::reduce || a.verb == Verb::update;
      while (!waiting.empty() && (last || (computes(a.verb) && int(waiting.size()) > delay)))
        all.push_back(waiting.front()), waiting.erase(waiting.begin());
      if (a.verb == Verb::backward) {
        a.verb = Verb::backward_weight;
        waiting.push_back(a);
        a.verb = Verb::backward_input;
      }
      all.push_back(a);
    }
    actions = all;
  }
  return schedule;
}

int exchanges_of(const Schedule& schedule) {
  const Partners partners = match_messages(schedule);
  int count = 2 * int(partners.meetings.size());  // two halves each
  for (const auto& actions : schedule.ranks)
    count += int(std::ranges::count(actions, Verb::send, &Action::verb));
  return count;
}

// Besides being safe, the order has to have all exchanges, each once, with ascending times.
void expect_complete(const std::vector<Exchange>& order, const Schedule& schedule) {
  std::set<std::tuple<int, int, bool>> seen;
  for (const Exchange& e : order)
    for (const ActionPlace& p : e.places) {
      EXPECT_TRUE(is_exchange(schedule.ranks[size_t(p.rank)][size_t(p.index)]));
      EXPECT_TRUE(seen.insert({p.rank, p.index, e.scatters}).second);
    }
  size_t all = 0;
  for (const auto& actions : schedule.ranks)
    all += size_t(std::ranges::count_if(actions, is_exchange) +
                  std::ranges::count(actions, Verb::reduce, &Action::verb));
  EXPECT_EQ(seen.size(), all);
  EXPECT_TRUE(std::ranges::is_sorted(order, {}, &Exchange::done_s));
}

int by_flow(int, int, Flow flow) { return lane_of_flow(flow); }

std::string carry_out(const Program& program, const std::vector<std::vector<int>>& issue, Host host) {
  return LaneRendezvous(program, issue, host).carry_out();
}

void expect_safe(const Schedule& schedule, const Profile& profile, const Plan& plan, const Link& link) {
  const Program program = compile(schedule, profile, plan);
  const auto order = message_order(program, plan, profile, one_link(link));
  expect_complete(order, schedule);
  const auto issue = issue_order(order, int(schedule.ranks.size()));
  const double free_s = simulate(schedule, plan, profile, one_link(link)).step_s;
  for (const LaneOf& lane_of : {LaneOf(one_lane), LaneOf(by_flow)}) {
    for (const Host host : {Host::blocks, Host::runs_ahead}) {
      LaneRendezvous stand_in(program, issue, host, lane_of);
      ASSERT_EQ(stand_in.carry_out(), "") << print(schedule);
      EXPECT_EQ(stand_in.exchanges(), exchanges_of(schedule));
    }
    // The simulator with lanes can carry it out as well, and is not faster than with a link for every pair.
    // But where a rank has several stages, activations and gradients go the same way, and have a lane each.
    const Timeline streams = simulate_in_order(program, plan, profile, one_link(link), order, lane_of);
    if (!has_several_stages_a_rank(plan)) {
      EXPECT_GE(streams.step_s, free_s * (1 - 1e-12));
    }
  }
}

// Visits a plan's schedules: under every policy that is for it, and with late weight halves.
void expect_all_safe(const Profile& profile, const Plan& stages, int least_microbatches, const Link& link) {
  for (const Policy& policy : policies()) {
    if (has_replicas(stages) && !policy.replicas) continue;
    if (int(stages.stages.size()) % chunks_of(policy) != 0) continue;
    const Plan plan = on_ranks_of(policy, stages);
    const int microbatches = fitting(policy, least_microbatches, plan.ranks());
    SCOPED_TRACE(fmt::format("{}, S {}, M {}", policy.name, plan.stages.size(), microbatches));
    const Schedule schedule = make_schedule(profile, plan, policy, microbatches);
    expect_safe(schedule, profile, plan, link);
    if (!policy.trains || policy.halves) continue;
    for (const int delay : {1, 3}) {
      const Schedule halves = with_late_weights(schedule, delay);
      validate(halves, profile, plan);
      expect_safe(halves, profile, plan, link);
    }
  }
}

TEST(MessageOrder, IsSafeForAllSmallChains) {
  for (const NodeCost& cost : {NodeCost{.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1},
                               NodeCost{}})  // nothing takes time: all ties
    for (int S = 1; S <= 8; ++S)
      for (const int M : {1, 3, 13})
        for (const Link& link : links) {
          const Profile profile = chain(S, cost);
          expect_all_safe(profile, one_node_each(profile), M, link);
        }
}

TEST(MessageOrder, IsSafeForRandomNetworksWithSkips) {
  std::mt19937 random(21);
  int skips = 0;
  constexpr int trials = 24;
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(fmt::format("trial {}", trial));
    const int S = 1 + trial % 8;
    Profile profile = random_network(random, S + 2 + int(random() % 12));
    if (trial % 5 == 0)
      for (ProfileNode& node : profile.nodes) node.cost = {.output_bytes = node.cost.output_bytes};
    const Plan plan = random_plan(random, profile, S);
    const auto stage_of = plan.stage_of(int(profile.nodes.size()));
    for (size_t n = 0; n < profile.nodes.size(); ++n)
      for (const int x : profile.nodes[n].inputs)
        skips += stage_of[size_t(x)] >= 0 && stage_of[n] > stage_of[size_t(x)] + 1;
    expect_all_safe(profile, plan, 1 + int(random() % 11), links[size_t(trial) % std::size(links)]);
  }
  EXPECT_GT(skips, trials * 4 / 5);  // the sample does contain the hard case
}

TEST(MessageOrder, IsSafeWithReplicasAndAllReduces) {
  std::mt19937 random(22);
  int reduces = 0;
  constexpr int trials = 64;
  for (int trial = 0; trial < trials; ++trial) {
    SCOPED_TRACE(fmt::format("trial {}", trial));
    const int S = 1 + trial % 4;
    Profile profile = random_network(random, S + 2 + int(random() % 8));
    if (trial % 2) add_weights(profile, random);
    const Plan plan = randomly_replicated(random, random_plan(random, profile, S), 3);
    const int M = 3 + int(random() % 9);
    reduces += int(match_messages(make_schedule(profile, plan, Policy::gpipe, M)).meetings.size());
    expect_all_safe(profile, plan, M, links[size_t(trial) % std::size(links)]);
  }
  EXPECT_GT(reduces, trials * 15 / 8);
}

TEST(MessageOrder, IsSafeForNetworksWithBranches) {
  register_cpu_backend();
  std::mt19937 random(23);
  for (const char* model : {"inception_v3", "densenet121"}) {
    const Graph graph = lower(make_model(model, {.microbatch = 2}), backend("cpu"));
    const Profile profile = test::priced_by_flops(unpriced(graph, "cpu"));
    for (int S = 2; S <= 8; ++S) {
      SCOPED_TRACE(model);
      expect_all_safe(profile, random_plan(random, profile, S), 6, {.bytes_per_s = 1e9, .latency_s = 1e-5});
    }
  }
}

// On two ranks every exchange needs both, so any two of one rank the other way round are an error.
TEST(MessageOrder, AnyTwoExchangesSwappedAreFound) {
  const Profile profile = chain(2);
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 5);
  const Program program = compile(schedule, profile, plan);
  const auto issue =
      issue_order(message_order(program, plan, profile, one_link({})), int(schedule.ranks.size()));
  ASSERT_EQ(issue[0].size(), 10u);
  for (size_t rank = 0; rank < 2; ++rank)
    for (size_t i = 0; i + 1 < issue[rank].size(); ++i) {
      auto wrong = issue;
      std::swap(wrong[rank][i], wrong[rank][i + 1]);
      for (const Host host : {Host::blocks, Host::runs_ahead})
        EXPECT_NE(carry_out(program, wrong, host), "") << "rank " << rank << ", " << i;
    }
}

TEST(MessageOrder, TheReportNamesWhoWaitsWhere) {
  const Schedule schedule = parse_schedule(
      "microbatches 1\n"
      "rank 0: 0L0 0F0 0S0:a2>1 0R0:g2.3<1 0B0 0U\n"
      "rank 1: 1L0 1R0:a2<0 1F0 1B0 1S0:g2.3>0 1U\n",
      "text");
  const Profile profile = chain(2);
  const Program program = compile(schedule, profile, one_node_each(profile));
  EXPECT_EQ(carry_out(program, {{2, 3}, {1, 4}}, Host::blocks), "");
  EXPECT_EQ(carry_out(program, {{3, 2}, {1, 4}}, Host::blocks),
            "rank 0 stands in 0L0, its stream in 0R0:g2.3<1\nrank 1 stands in 1L0, its stream in 1R0:a2<0\n");
}

// The orders that suggest themselves: as each rank comes to its sends and receives; all by the time of
// delivery, which forgets that a buffer has to be free; and by done_s with ties by place, which forgets that
// time may stand still between two messages.
TEST(MessageOrder, OtherOrdersDeadlock) {
  std::mt19937 random(24);
  int as_posted = 0, by_delivery = 0, without_depth = 0, trials = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int S = 3 + trial % 6;
    Profile profile = random_network(random, S + 4 + int(random() % 10));
    const Plan plan = random_plan(random, profile, S);
    const bool in_no_time = trial % 2;
    if (in_no_time)
      for (ProfileNode& node : profile.nodes) node.cost = {};
    const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 8);
    const Program program = compile(schedule, profile, plan);
    const Cluster cluster = one_link(links[in_no_time ? 0 : 1]);
    std::vector<std::vector<int>> posted(schedule.ranks.size());
    for (size_t r = 0; r < schedule.ranks.size(); ++r)
      for (size_t i = 0; i < schedule.ranks[r].size(); ++i)
        if (is_exchange(schedule.ranks[r][i])) posted[r].push_back(int(i));
    const auto stuck_when_sorted = [&](const auto& time_of) {
      std::vector<Exchange> order = message_order(program, plan, profile, cluster);
      std::ranges::sort(order, {}, [&](const Exchange& e) {
        return std::tuple(time_of(e), e.places[0].rank, e.places[0].index);
      });
      return !carry_out(program, issue_order(order, int(posted.size())), Host::blocks).empty();
    };
    const Timeline timeline = simulate(schedule, plan, profile, cluster);
    std::map<std::pair<int, Action>, double> delivered_s;
    for (const Event& e : timeline.events) delivered_s[{e.rank, e.action}] = e.delivered_s;
    const auto delivery_of = [&](const Exchange& e) {
      return delivered_s.at(
          {e.places[1].rank, schedule.ranks[size_t(e.places[1].rank)][size_t(e.places[1].index)]});
    };
    ++trials;
    as_posted += !carry_out(program, posted, Host::blocks).empty();
    if (in_no_time)
      without_depth += stuck_when_sorted([](const Exchange& e) { return e.done_s; });
    else
      by_delivery += stuck_when_sorted(delivery_of);
  }
  EXPECT_GT(as_posted, trials / 2);
  EXPECT_GT(by_delivery, trials / 20);
  EXPECT_GT(without_depth, trials / 20);
  RecordProperty("as_posted", as_posted);
  RecordProperty("by_delivery", by_delivery);
  RecordProperty("without_depth", without_depth);
}

// Two stages of 1 s forward and 1 s backward, one byte at 1 byte/s: on one stream messages wait for each
// other.
TEST(MessageOrder, SimulatesOneStreamPerRank) {
  Profile profile = chain(2, {.forward_s = 1, .backward_input_s = 1, .output_bytes = 1});
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::gpipe, 2);
  const Cluster cluster = one_link({.bytes_per_s = 1});
  const Program program = compile(schedule, profile, plan);
  const auto order = message_order(program, plan, profile, cluster);
  // a0 1-2, a1 2-3, forwards of stage 1 2-3 and 3-4, backwards 4-5 and 5-6; g0 5-6, g1 6-7; stage 0's
  // backwards 6-7 and 7-8.
  EXPECT_DOUBLE_EQ(simulate_in_order(program, plan, profile, cluster, order).step_s, 8);
  // With three ranks, rank 1's stream carries messages of both neighbours: a1 to it can't begin while it
  // sends a0 on.
  Profile three = chain(3, {.forward_s = 1, .output_bytes = 2});
  const Plan on_three = one_node_each(three);
  const Schedule forward = make_schedule(three, on_three, Policy::forward_only, 2);
  const Program forward_program = compile(forward, three, on_three);
  const auto forward_order = message_order(forward_program, on_three, three, cluster);
  // Pairs apart: a0 to rank 1 1-3, its forward 3-4, on 4-6, a1 to rank 1 3-5, forward 5-6, on 6-8, last
  // forward 8-9.
  EXPECT_DOUBLE_EQ(simulate(forward, on_three, three, cluster).step_s, 9);
  // One stream: a0 1-3, a1 3-5, then a0 on 5-7, a1 on 7-9, last forward 9-10.
  EXPECT_DOUBLE_EQ(simulate_in_order(forward_program, on_three, three, cluster, forward_order).step_s, 10);
}

// With a lane for each direction gradients don't wait for activations, and with a link for each pair of ranks
// nobody waits.
TEST(MessageOrder, SimulatesLanes) {
  Profile profile = chain(3, {.forward_s = 1, .backward_input_s = 1, .output_bytes = 2});
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 6);
  const Cluster cluster = one_link({.bytes_per_s = 2});
  const Program program = compile(schedule, profile, plan);
  const auto order = message_order(program, plan, profile, cluster);
  const auto step_s = [&](const LaneOf& lane_of) {
    return simulate_in_order(program, plan, profile, cluster, order, lane_of).step_s;
  };
  const double one = step_s(one_lane), two = step_s(by_flow);
  const double none = step_s([](int, int, Flow) { return no_lane; });
  EXPECT_LT(two, one);
  EXPECT_LE(none, two);
  EXPECT_DOUBLE_EQ(none, simulate(schedule, plan, profile, cluster).step_s);
}

// The order is made of foretold times; actions then take others. Nobody waits forever, whatever they are,
// and with a lane for each direction less is lost to it than with one.
TEST(MessageOrder, OtherTimesThanForetoldCostLittleWithTwoLanes) {
  std::mt19937 random(25);
  std::uniform_real_distribution<double> exponent(std::log(0.3), std::log(3.0));
  double one = 0, two = 0, pairs = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int S = 3 + trial % 6;
    const Profile foretold = random_network(random, S + 4 + int(random() % 10));
    const Plan plan = random_plan(random, foretold, S);
    const Schedule schedule = make_schedule(foretold, plan, Policy::one_f_one_b, 12);
    const Cluster cluster = one_link({.bytes_per_s = 1e3, .latency_s = 0.1});
    const Program program = compile(schedule, foretold, plan);
    const auto order = message_order(program, plan, foretold, cluster);
    Profile real = foretold;
    for (ProfileNode& node : real.nodes)
      for (double* s : {&node.cost.forward_s, &node.cost.backward_input_s, &node.cost.backward_weight_s})
        *s *= std::exp(exponent(random));
    const double free_s = simulate(schedule, plan, real, cluster).step_s;
    one += simulate_in_order(program, plan, real, cluster, order).step_s / free_s;
    two += simulate_in_order(program, plan, real, cluster, order, by_flow).step_s / free_s;
    const auto by_pair = [&](int from, int to, Flow) { return 100 * from + to; };
    pairs += simulate_in_order(program, plan, real, cluster, order, by_pair).step_s / free_s;
  }
  EXPECT_LT(two, one);
  EXPECT_LE(pairs, two);
  RecordProperty("one_lane", std::to_string(one / 60));
  RecordProperty("two_lanes", std::to_string(two / 60));
  RecordProperty("a_lane_a_pair", std::to_string(pairs / 60));
}

TEST(MessageOrder, AWrongOrderIsRefusedByTheSimulator) {
  const Profile profile = chain(2);
  const Plan plan = one_node_each(profile);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 3);
  const Program program = compile(schedule, profile, plan);
  auto order = message_order(program, plan, profile, one_link({}));
  std::ranges::reverse(order);
  expect_error([&] { simulate_in_order(program, plan, profile, one_link({}), order); },
               {"lets rank", "wait forever"});
}

}  // namespace
}  // namespace antichain::test
