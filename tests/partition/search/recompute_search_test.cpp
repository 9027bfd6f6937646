// The choice of what a stage computes again is compared with all choices, on random stages.
#include "partition/search/recompute_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "partition/plan/stage_cost.h"
#include "partition/search/recompute_state.h"
#include "tests/partition/networks.h"

namespace antichain::test {
namespace {

struct Case {
  Profile profile;
  std::vector<int> stage;
  int in_flight = 1;
};

struct Sizes {
  int least_nodes = 2, most_nodes = 9;
  int most_ns = 9, most_bytes = 20;
  int unevenness = 1;  // by so much a third of the times and bytes are smaller
};
constexpr Sizes small, large = {13, 16, 2'000'000, 50'000'000, 100};

// Every third is a chain, and the others have skips. A stage may begin and end anywhere.
Case random_case(uint64_t seed, const Sizes& sizes) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int from, int to) { return from + int(random() % uint64_t(to - from + 1)); };
  const auto uneven = [&](int most) { return pick(0, most) / (pick(0, 2) > 0 ? 1 : sizes.unevenness); };
  Case made{.profile = {.model = "random"}, .in_flight = pick(1, 4)};
  Profile& profile = made.profile;
  const int input = add_input(profile), nodes = pick(sizes.least_nodes, sizes.most_nodes);
  for (int i = 0; i < nodes; ++i) {
    std::vector<int> inputs = {i == 0 ? input : int(profile.nodes.size()) - 1};
    for (int extra = seed % 3 == 0 ? 0 : pick(0, 2); extra > 0; --extra) {
      const int from = pick(0, int(profile.nodes.size()) - 1);
      if (std::ranges::count(inputs, from) == 0) inputs.push_back(from);
    }
    const int64_t ns = uneven(sizes.most_ns), backward_ns = uneven(sizes.most_ns);
    const int n = add(profile, inputs, ns, backward_ns, uneven(sizes.most_bytes));
    ProfileNode& node = profile.nodes[size_t(n)];
    node.needs_gradient = pick(0, 5) > 0;
    node.cost.stash_bytes = pick(0, 2) > 0 ? uneven(sizes.most_bytes) : 0;
    node.cost.keeps_output = pick(0, 1) > 0;
    if (pick(0, 1) > 0) {
      node.op = "relu";
      node.cost.output_bytes = profile.nodes[size_t(inputs[0])].cost.output_bytes;
    }
    if (i + 1 == nodes) node.role = Role::loss;
  }
  for (int n = pick(1, 2); n < int(profile.nodes.size()); ++n)
    if (pick(0, 9) > 0) made.stage.push_back(n);
  if (made.stage.empty()) made.stage.push_back(1);
  return made;
}

void compare_with_all(uint64_t seed, const Sizes& sizes) {
  const Case of = random_case(seed, sizes);
  const StageOrder order(of.profile, of.profile.consumers(), of.stage);
  struct Choice {
    int64_t ns = 0, bytes = 0;
  };
  std::vector<Choice> all;
  for (uint64_t mask = 0; mask < uint64_t(1) << order.size(); ++mask) {
    std::vector<bool> again;
    Choice choice;
    bool may = true;
    for (int i = 0; i < order.size(); ++i) {
      again.push_back(mask >> i & 1);
      may = may && (order.places[size_t(i)].computes || !again.back());
      if (again.back()) choice.ns += work_ns({.forward_s = order.places[size_t(i)].forward_s}, 1);
    }
    if (!may) continue;
    const WorkingSet set = working_set(order, again);
    choice.bytes = of.in_flight * set.kept_bytes + set.again_bytes;
    all.push_back(choice);
  }
  const int64_t least = std::ranges::min(all, {}, &Choice::bytes).bytes, most = all.front().bytes;
  const RecomputeFind fewest = least_bytes(order, {.in_flight = of.in_flight});
  EXPECT_EQ(fewest.choice->bytes, least) << seed;
  EXPECT_TRUE(fewest.exact) << seed;
  std::vector<int64_t> limits = {
      least - 1, least, (3 * least + most) / 4, (least + most) / 2, (least + 3 * most) / 4, most};
  for (size_t i = 1; i < 4; ++i) limits.push_back(all[all.size() * i / 4].bytes);  // nothing is left over
  for (const int64_t limit : limits) {
    int64_t ns = std::numeric_limits<int64_t>::max();
    for (const Choice& choice : all)
      if (choice.bytes <= limit) ns = std::min(ns, choice.ns);
    const RecomputeFind found = least_time(order, {.in_flight = of.in_flight, .budget_bytes = limit});
    EXPECT_TRUE(found.exact) << seed;
    ASSERT_EQ(found.choice.has_value(), limit >= least) << seed;
    if (!found.choice) continue;
    EXPECT_EQ(found.choice->ns, ns) << seed << " within " << limit;
    EXPECT_LE(found.choice->bytes, limit) << seed;
  }
}

TEST(RecomputeSearch, IsAsGoodAsAllChoices) {
  for (uint64_t seed = 0; seed < 300; ++seed) compare_with_all(seed, small);
}

TEST(RecomputeSearch, IsAsGoodAsAllChoicesInLargerStages) {
  for (uint64_t seed = 1000; seed < 1030; ++seed) compare_with_all(seed, large);
}

// The states add up to the formula, whatever is chosen.
TEST(RecomputeState, AgreesWithTheFormula) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Case of = random_case(seed, {.most_nodes = 14});
    const StageOrder order(of.profile, of.profile.consumers(), of.stage);
    const RecomputeSteps steps(order);
    std::mt19937_64 random(seed);
    for (const int64_t floor : {0, 60, 120}) {
      std::vector<bool> again;
      RecomputeState state = steps.first();
      int64_t kept = 0, working = floor;
      for (int i = 0; i <= order.size(); ++i) {
        const bool now = i < order.size() && order.places[size_t(i)].computes && random() % 3 > 0;
        if (i < order.size()) again.push_back(now);
        const RecomputeStep step = steps.step(state, i, now, floor);
        kept += step.kept_bytes;
        working = std::max(working, step.working_bytes);
      }
      const WorkingSet set = working_set(order, again);
      ASSERT_EQ(kept, set.kept_bytes) << seed;
      ASSERT_EQ(working, std::max(floor, set.again_bytes)) << seed;
    }
  }
}

// Every node reads the three before, so states are too many to tell all apart.
TEST(RecomputeSearch, IsProvedWhereStatesAreMany) {
  constexpr int nodes = 60, reads = 3;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](int from, int to) { return from + int(random() % uint64_t(to - from + 1)); };
    Profile profile{.model = "many states"};
    add_input(profile);
    std::vector<int> stage(nodes);
    std::iota(stage.begin(), stage.end(), 1);
    for (const int n : stage) {
      std::vector<int> inputs(size_t(std::min(n, reads)));
      std::iota(inputs.begin(), inputs.end(), n - int(inputs.size()));
      const int64_t ns = 1000 * pick(100, 900);
      NodeCost& cost = profile.nodes[size_t(add(profile, inputs, ns, 2 * ns, pick(1000, 90'000)))].cost;
      if (pick(0, 1) > 0) cost.stash_bytes = pick(0, 90'000);
      cost.keeps_output = pick(0, 2) > 0;
    }
    const StageOrder order(profile, profile.consumers(), stage);
    const int64_t least = least_bytes(order, {.effort = 200'000}).choice->bytes;
    const int64_t most = working_set(order, std::vector<bool>(nodes)).kept_bytes;
    EXPECT_TRUE(least_time(order, {.budget_bytes = least + (most - least) / 10, .effort = 600'000}).exact)
        << seed;
  }
}

TEST(RecomputeSearch, RecomputesNothingWithoutNeed) {
  const Case of = random_case(3, small);
  const StageOrder order(of.profile, of.profile.consumers(), of.stage);
  const auto found = least_time(order, {.in_flight = 2, .budget_bytes = int64_t(1) << 40});
  EXPECT_EQ(std::ranges::count(found.choice->again, true), 0);
}

}  // namespace
}  // namespace antichain::test
