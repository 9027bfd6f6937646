// The exact planner is compared with a brute force that shares nothing with it: sets are bit masks, and every
// nested pair is tried.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <tuple>

#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;
constexpr int64_t never = std::numeric_limits<int64_t>::max();

class BruteForce {
 public:
  BruteForce(const Profile& profile, const Link& link, bool transfers)
      : profile_(profile), transfers_(transfers), sets_(test::down_sets(profile)) {
    for (Mask set : sets_) measure(set, link);
  }

  // Returns the smallest bottleneck of all S-stage plans, and the fewest bytes and squares of the plans that
  // reach it.
  std::tuple<int64_t, int64_t, int64_t> best(int stages) const {
    int64_t bottleneck = minimum(stages, [](int64_t so_far, int64_t stage, int64_t boundary, int64_t) {
      return std::max({so_far, stage, boundary});
    });
    // Bytes first, then squares: both in one number, compared at once.
    constexpr int64_t byte = int64_t(1) << 32;
    int64_t tie = minimum(stages, [&](int64_t so_far, int64_t stage, int64_t boundary, int64_t bytes) {
      return std::max(stage, boundary) > bottleneck ? never : so_far + bytes * byte + stage * stage;
    });
    return {bottleneck, tie / byte, tie % byte};
  }

  static int64_t work_ns(const ProfileNode& node) { return std::llround(node.cost.compute_s() * 1e9); }
  int64_t bytes(Mask set) const { return bytes_[index(set)]; }

 private:
  void measure(Mask set, const Link& link) {
    int64_t work = 0, bytes = 0;
    double latency_s = 0;
    for (size_t n = 0; n < profile_.nodes.size(); ++n) {
      if (!(set >> n & 1)) continue;
      work += work_ns(profile_.nodes[n]);
      bool crosses = false;
      for (size_t v = 0; v < profile_.nodes.size(); ++v)
        for (int u : profile_.nodes[v].inputs) crosses |= u == int(n) && !(set >> v & 1);
      if (!crosses) continue;
      bytes += profile_.nodes[n].cost.output_bytes;
      latency_s += link.latency_s;
    }
    work_.push_back(work);
    bytes_.push_back(bytes);
    transfer_.push_back(transfers_ ? std::llround(2e9 * (latency_s + double(bytes) / link.bytes_per_s)) : 0);
  }

  size_t index(Mask set) const { return std::lower_bound(sets_.begin(), sets_.end(), set) - sets_.begin(); }

  template <class Cost>
  int64_t minimum(int stages, Cost cost) const {
    std::vector<int64_t> now(sets_.size(), never);
    now[0] = 0;
    for (int s = 0; s < stages; ++s) {
      std::vector<int64_t> then(sets_.size(), never);
      for (size_t a = 0; a < sets_.size(); ++a)
        for (size_t b = a + 1; b < sets_.size(); ++b)
          if (now[a] != never && (sets_[a] & ~sets_[b]) == 0)
            then[b] = std::min(then[b], cost(now[a], work_[b] - work_[a], transfer_[b], bytes_[b]));
      now = then;
    }
    return now.back();
  }

  const Profile& profile_;
  bool transfers_;
  const std::vector<Mask> sets_;
  std::vector<int64_t> work_, bytes_, transfer_;
};

// Has a plan's bottleneck, crossing bytes and sum of squared stage times, from its node lists alone.
std::tuple<int64_t, int64_t, int64_t> figures(const Plan& plan, const Profile& profile,
                                              const BruteForce& brute) {
  int64_t bytes = 0, squares = 0;
  Mask so_far = 0;
  for (const PlanStage& stage : plan.stages) {
    int64_t work = 0;
    for (int n : stage.nodes) {
      work += BruteForce::work_ns(profile.nodes[n]);
      so_far |= Mask(1) << n;
    }
    squares += work * work;
    bytes += brute.bytes(so_far);
  }
  return {std::llround(plan.bottleneck_s * 1e9), bytes, squares};
}

class AgainstBruteForce : public ::testing::TestWithParam<std::pair<Objective, double>> {};

TEST_P(AgainstBruteForce, BottleneckAndTieRuleOn600RandomNetworks) {
  const auto& [objective, latency_s] = GetParam();
  Link link = {.bytes_per_s = 1e9, .latency_s = latency_s};
  int compared = 0;
  int64_t states = 0;
  for (int seed = 0; seed < 600; ++seed) {
    Profile profile = random_network(seed, 11);
    if (profile.nodes.size() > 18) continue;  // or trying all subsets takes seconds
    BruteForce brute(profile, link, objective == Objective::compute_or_transfer);
    for (int stages = 1; stages <= std::min(4, compute_nodes(profile)); ++stages) {
      Plan plan =
          plan_antichain(profile, {.stages = stages, .cluster = one_link(link), .objective = objective});
      ASSERT_NO_THROW(validate(plan, profile)) << "seed " << seed;
      ASSERT_EQ(int(plan.stages.size()), stages);
      ASSERT_EQ(figures(plan, profile, brute), brute.best(stages))
          << "seed " << seed << ", " << stages << " stages";
      ASSERT_TRUE(plan.proved_optimal());
      ++compared;
      states += plan.states;
    }
  }
  EXPECT_GT(compared, 1800);         // nearly four stage counts for each of the 600
  EXPECT_GT(states, 30 * compared);  // and the networks branch: 12 nodes in a chain have 13 states
}

INSTANTIATE_TEST_SUITE_P(Objectives, AgainstBruteForce,
                         ::testing::Values(std::pair(Objective::compute, 0.0),
                                           std::pair(Objective::compute_or_transfer, 0.0),
                                           std::pair(Objective::compute_or_transfer, 4e-9)),
                         [](const auto& info) {
                           std::string name =
                               info.param.first == Objective::compute ? "compute" : "compute_or_transfer";
                           return info.param.second > 0 ? name + "_with_latency" : name;
                         });

TEST(AntichainPlanner, CuttingAcrossBranchesBeatsEveryPrefix) {
  // Two branches 20 -> 40, listed one after the other. Both 20s, one 40, the other 40: perfectly even.
  Profile profile;
  for (int branch = 0; branch < 2; ++branch) add(profile, {add(profile, {}, 20, 0)}, 40, 0);
  PlanOptions options = {.stages = 3, .objective = Objective::compute};
  Plan whole = plan_antichain(profile, options);
  EXPECT_DOUBLE_EQ(whole.bottleneck_s, 40e-9);
  EXPECT_EQ(whole.states, 9);
  EXPECT_EQ(whole.stages[0].nodes, std::vector<int>({0, 2}));
  EXPECT_TRUE(whole.proved_optimal());
}

TEST(AntichainPlanner, BeyondMaxStatesItTakesTheBestOfSeveralOrdersAndTellsTheGap) {
  int gaps = 0, proved = 0;
  for (int seed = 0; seed < 200; ++seed) {
    Profile profile = random_network(seed, 12), ordered = profile;
    // The same network with the graph order made the only order, by edges that carry nothing.
    for (size_t n = 0, last = 0; n < ordered.nodes.size(); ++n) {
      if (ordered.nodes[n].role == Role::input) continue;
      if (ordered.nodes[last].role != Role::input && last < n) ordered.nodes[n].inputs.push_back(int(last));
      last = n;
    }
    int stages = std::min(3, compute_nodes(profile));
    PlanOptions options = {.stages = stages, .objective = Objective::compute, .max_states = 1};
    Plan limited = plan_antichain(profile, options);
    Plan whole = plan_antichain(profile, {.stages = stages, .objective = Objective::compute});
    Plan best_prefix = plan_antichain(ordered, {.stages = stages, .objective = Objective::compute});
    validate(limited, profile);
    EXPECT_LE(limited.bottleneck_s, best_prefix.bottleneck_s) << "seed " << seed;
    EXPECT_LE(whole.bottleneck_s, limited.bottleneck_s);
    EXPECT_LE(limited.lower_bound_s, whole.bottleneck_s);
    gaps += limited.gap() > 0;
    proved += limited.proved_optimal();
  }
  EXPECT_GT(gaps, 20);  // or the networks above never put the bound to the test
  EXPECT_GT(proved, 20);
}

// Each idle end doubles the down-sets, and with 24 of them nobody lists those.
TEST(AntichainPlanner, IdleEndsCostNothing) {
  for (int seed = 0; seed < 20; ++seed) {
    Profile profile = random_network(uint64_t(seed), 12);
    const int stages = std::min(3, compute_nodes(profile));
    const PlanOptions options = {.stages = stages, .objective = Objective::compute, .max_states = 10'000};
    const Plan without = plan_antichain(profile, options);
    for (int end = 0, last = int(profile.nodes.size()) - 1; end < 24; ++end) add(profile, {last}, 0, 0, 0);
    const Plan plan = plan_antichain(profile, options);
    validate(plan, profile);
    EXPECT_LE(plan.bottleneck_s, without.bottleneck_s) << "seed " << seed;
  }
}

TEST(AntichainPlanner, TransfersMoveACutToWhereLessCrosses) {
  Profile profile;
  int x = add(profile, {}, 100, 0, 10);
  x = add(profile, {x}, 100, 0, 5000);
  x = add(profile, {x}, 100, 0, 10);
  add(profile, {x}, 100, 0, 10);
  PlanOptions options = {
      .stages = 2, .cluster = one_link(byte_a_nanosecond), .objective = Objective::compute};
  EXPECT_EQ(plan_antichain(profile, options).stages[0].nodes, std::vector<int>({0, 1}));
  options.objective = Objective::compute_or_transfer;
  Plan plan = plan_antichain(profile, options);
  EXPECT_DOUBLE_EQ(plan.bottleneck_s, 300e-9);
  EXPECT_EQ(plan.stages[0].nodes, std::vector<int>({0}));  // a full tie with {0, 1, 2}: the earlier state
}

TEST(AntichainPlanner, OneStageHoldsEverythingButInputs) {
  Plan plan = plan_antichain(chain(1), {.stages = 1});
  EXPECT_EQ(plan.stages[0].nodes, std::vector<int>({1}));
  EXPECT_EQ(plan.stages[0].ranks, std::vector<int>({0}));
  EXPECT_DOUBLE_EQ(plan.bottleneck_s, 3e-6);
}

TEST(AntichainPlanner, AnUnpricedNetworkCanBePlanned) {
  Profile profile = parallel_chains(3, 6);
  for (ProfileNode& node : profile.nodes) node.cost = {};
  Plan plan = plan_antichain(profile, {.stages = 18});
  validate(plan, profile);
  EXPECT_EQ(plan.bottleneck_s, 0);
}

TEST(AntichainPlanner, GivesTheSamePlanEveryTime) {
  Profile profile = parallel_chains(5, 5);  // 7,776 states, all ties: more candidates than are compared
  std::string hash = plan_hash(plan_antichain(profile, {.stages = 4}));
  EXPECT_EQ(plan_hash(plan_antichain(profile, {.stages = 4})), hash);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(AntichainPlanner, Plans20000NodesInto16Stages) {
  for (const Profile& profile : {chain(20000), residual_blocks(6666)}) {
    const auto start = std::chrono::steady_clock::now();
    Plan plan = plan_antichain(profile, {.stages = 16, .cluster = one_link(byte_a_nanosecond)});
    EXPECT_LT(seconds_since(start), 10);  // takes 0.1 s; ten for sanitizers on a busy machine
    validate(plan, profile);
    EXPECT_LT(plan.gap(), 1e-12);
    EXPECT_LT(plan.bottleneck_s, 1.01 * plan_uniform(profile, {.stages = 16}).bottleneck_s);
  }
}

TEST(AntichainPlanner, Plans100000NodesInto64Stages) {
  const auto start = std::chrono::steady_clock::now();
  Plan plan = plan_antichain(chain(100'000), {.stages = 64});
  EXPECT_TRUE(plan.proved_optimal());
  EXPECT_LT(seconds_since(start), 30);  // takes 0.3 s; thirty for sanitizers on a busy machine
}

TEST(AntichainPlanner, AThousandNodesWithTooManyAntichainsComeWithinAHundredthOfTheBound) {
  for (int seed = 0; seed < 2; ++seed) {
    Profile profile = nasnet_like(18, seed);
    EXPECT_GT(profile.nodes.size(), 900);
    for (int stages : {4, 8}) {
      Plan plan = plan_antichain(profile, {.stages = stages, .objective = Objective::compute});
      validate(plan, profile);
      EXPECT_LE(plan.gap(), 0.01) << "seed " << seed << ", " << stages << " stages";
      std::printf("  %d stages: gap %.4f\n", stages, plan.gap());
    }
  }
}

TEST(AntichainPlanner, ANetworkTooWideToEnumerateIsCutInGraphOrder) {
  Profile profile = parallel_chains(5000, 1);
  Plan plan = plan_antichain(profile, {.stages = 8});
  validate(plan, profile);
  EXPECT_EQ(plan.states, 5001);
  EXPECT_TRUE(plan.proved_optimal());  // 625 equal nodes a stage: the bound itself
}

}  // namespace
}  // namespace antichain
