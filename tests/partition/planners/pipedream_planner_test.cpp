// PipeDream's planner is compared with a slow, literal form of what its authors published, and with ours.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "framework/json.h"
#include "partition/plan/stage_cost.h"
#include "partition/planners/pipedream_cost.h"
#include "partition/planners/planner.h"
#include "partition/profile/read_profile.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

// Returns the cost of the slowest stage by PipeDream's own price. It knows of no devices' speeds.
double pipedream_cost_s(const Plan& plan, const Profile& profile, const PlanOptions& options) {
  double slowest_ns = 0;
  for (const PlanStage& stage : plan.stages) {
    int64_t work = 0, params = 0;
    for (int n : stage.nodes) {
      work += work_ns(profile.nodes[n].cost, 1);
      params += profile.nodes[n].cost.param_bytes;
    }
    slowest_ns = std::max(slowest_ns,
                          pipedream_stage_ns(work, params, int(stage.ranks.size()), pipedream_link(options)));
  }
  return slowest_ns / 1e9;
}

// Returns the down-sets of at most 10 nodes, as bits, the smaller ones first. This serves as the order of the
// published code's states, because only the sets inside a set matter to its minimum.
std::vector<unsigned> down_sets(const Profile& profile, const std::vector<int>& nodes) {
  std::vector<unsigned> sets;
  for (unsigned set = 1; set < (1u << nodes.size()); ++set) {
    bool closed = true;
    for (size_t v = 0; v < nodes.size(); ++v)
      for (int u : profile.nodes[nodes[v]].inputs)
        for (size_t w = 0; w < nodes.size(); ++w)
          if (nodes[w] == u && (set >> v & 1) && !(set >> w & 1)) closed = false;
    if (closed) sets.push_back(set);
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](unsigned a, unsigned b) { return __builtin_popcount(a) < __builtin_popcount(b); });
  return sets;
}

// Computes what compute_partitioning of optimizer_graph_hierarchical.py does for its row i = 0, index by
// index (m counts from 0). It returns the seconds of the slowest stage, or nothing where there is no way.
std::optional<double> published(const Profile& profile, int num_machines, bool straight, bool fewer,
                                double bandwidth) {
  const std::vector<int> nodes = one_stage(profile).stages[0].nodes;
  const std::vector<unsigned> states = down_sets(profile, nodes);
  auto sum = [&](unsigned set, auto price) {
    double sum = 0;
    for (size_t v = 0; v < nodes.size(); ++v)
      if (set >> v & 1) sum += price(profile.nodes[nodes[v]].cost);
    return sum;
  };
  auto compute = [&](unsigned set) {
    return sum(set, [](const NodeCost& cost) { return cost.compute_s(); });
  };
  auto parameters = [&](unsigned set) {
    return sum(set, [](const NodeCost& cost) { return double(cost.param_bytes); });
  };

  using Time = std::optional<double>;
  const int count = int(states.size());
  std::vector<std::vector<Time>> A(count, std::vector<Time>(num_machines));
  for (int j = 0; j < count; ++j)
    for (int m = 0; m < (straight ? 1 : num_machines); ++m)
      A[j][m] = (compute(states[j]) + 4 * m * parameters(states[j]) / (bandwidth * (m + 1))) / (m + 1);
  for (int m = 1; m < num_machines; ++m)
    for (int j = 0; j < count; ++j) {
      Time least = A[j][m];
      if (fewer && A[j][m - 1] && (!least || *A[j][m - 1] < *least)) least = A[j][m - 1];
      for (int k = 0; k < count; ++k) {
        if (k == j || (states[k] & ~states[j])) continue;
        for (int m_prime = 1; m_prime < (straight ? 2 : m + 1); ++m_prime) {
          double last = compute(states[j]) - compute(states[k]);
          last += 4 * (m_prime - 1) * (parameters(states[j]) - parameters(states[k])) / (bandwidth * m_prime);
          last /= m_prime;
          if (!A[k][m - m_prime]) continue;
          const double time = std::max(*A[k][m - m_prime], last);
          if (!least || *least > time) least = time;
        }
      }
      A[j][m] = least;
    }
  return A[count - 1][num_machines - 1];
}

Profile random_priced(int seed) {
  Profile profile = random_network(seed, 8);
  for (size_t n = 0; n < profile.nodes.size(); ++n)
    profile.nodes[n].cost.param_bytes = int64_t((n * 7 + size_t(seed)) % 11);
  return profile;
}

// The published code adds seconds where we add nanoseconds; its times are below 1e-6 s, sums of a dozen at
// most.
constexpr double rounding_s = 1e-18;

// With stages of one device each, or with replicas; of all devices, or of some.
TEST(PipeDream, FindsWhatThePublishedRecurrenceFinds) {
  for (int seed = 0; seed < 300; ++seed) {
    const Profile profile = random_priced(seed);
    for (const bool replicas : {false, true})
      for (const bool fewer : {false, true}) {
        const int most = replicas ? 6 : compute_nodes(profile) + (fewer ? 2 : 0);
        for (int devices = 1; devices <= most; ++devices) {
          const PlanOptions options = {.stages = devices,
                                       .at_most = fewer,
                                       .cluster = one_link(byte_a_nanosecond),
                                       .objective = Objective::compute,
                                       .replicas = {.automatic = replicas}};
          const Plan plan = plan_pipedream(profile, options);
          validate(plan, profile);
          EXPECT_TRUE(fewer ? plan.ranks() <= devices : plan.ranks() == devices);
          EXPECT_TRUE(replicas || plan.ranks() == int(plan.stages.size()));
          EXPECT_NEAR(pipedream_cost_s(plan, profile, options),
                      published(profile, devices, !replicas, fewer, 1e9).value(), rounding_s)
              << "seed " << seed << " devices " << devices << " fewer " << fewer;
        }
      }
  }
}

TEST(PipeDream, PricesAnAllReduceAsPublished) {
  // 1000 ns of work, 300 bytes of weights, 3 replicas, a byte a nanosecond: (1000 + 4 · 2 / 3 · 300) / 3
  EXPECT_DOUBLE_EQ(pipedream_stage_ns(1000, 300, 3, byte_a_nanosecond), 600);
  EXPECT_DOUBLE_EQ(pipedream_stage_ns(1000, 300, 1, byte_a_nanosecond), 1000);
  EXPECT_DOUBLE_EQ(pipedream_stage_ns(1000, 300, 4, {}), 250);  // an infinitely fast link
}

TEST(PipeDream, SeesTheSlowestLinkThatItsDevicesNeed) {
  Cluster cluster = {.devices = {{}, {}, {.node = 1}},
                     .within_node = {.bytes_per_s = 10},
                     .between_nodes = {.bytes_per_s = 1}};
  EXPECT_EQ(pipedream_link({.stages = 2, .cluster = cluster}).bytes_per_s, 10);
  EXPECT_EQ(pipedream_link({.stages = 3, .cluster = cluster}).bytes_per_s, 1);
}

TEST(PipeDream, IgnoresTransfers) {
  const Profile profile = random_priced(5);
  const PlanOptions free = {.stages = 3},
                    slow = {.stages = 3, .cluster = one_link({.bytes_per_s = 1, .latency_s = 1})};
  EXPECT_EQ(plan_hash(plan_pipedream(profile, free)), plan_hash(plan_pipedream(profile, slow)));
}

// Straight and without transfers both are exact over the same nested down-sets, so neither can be better.
TEST(PipeDream, IsAsGoodAsAntichainWhereTheirCostsAgree) {
  for (int seed = 0; seed < 300; ++seed) {
    const Profile profile = random_priced(seed);
    for (int stages = 1; stages <= compute_nodes(profile); ++stages) {
      const PlanOptions options = {.stages = stages, .objective = Objective::compute};
      EXPECT_EQ(plan_antichain(profile, options).bottleneck_s, plan_pipedream(profile, options).bottleneck_s);
    }
  }
}

TEST(PipeDream, IsNeverBetterThanAntichain) {
  for (int seed = 0; seed < 300; ++seed) {
    const Profile profile = random_priced(seed);
    for (int stages = 1; stages <= compute_nodes(profile); ++stages)
      for (const Objective objective : {Objective::compute, Objective::compute_or_transfer})
        for (bool replicas : {false, true}) {
          const PlanOptions options = {.stages = stages,
                                       .cluster = one_link(byte_a_nanosecond),
                                       .objective = objective,
                                       .replicas = {.automatic = replicas}};
          EXPECT_LE(plan_antichain(profile, options).bottleneck_s,
                    plan_pipedream(profile, options).bottleneck_s)
              << "seed " << seed << " stages " << stages << " " << name_of(objective) << " replicas "
              << replicas;
        }
  }
}

// On a free link the two costs are one: work / replicas.
TEST(PipeDream, IsNotBetterThanAntichainUnderItsOwnCostWithReplicas) {
  for (int seed = 0; seed < 300; ++seed) {
    const Profile profile = random_priced(seed);
    const PlanOptions options = {
        .stages = 2 + seed % 4, .objective = Objective::compute, .replicas = {.automatic = true}};
    EXPECT_LE(pipedream_cost_s(plan_antichain(profile, options), profile, options),
              pipedream_cost_s(plan_pipedream(profile, options), profile, options) +
                  1e-9)  // ours rounds up to whole ns
        << "seed " << seed;
  }
}

TEST(PipeDream, RefusesMoreAntichainsThanPairsCanBeComparedOf) {
  expect_has(error_of([] { plan_pipedream(parallel_chains(2, 80), {.stages = 2}); }),  // 81² − 1
             "compares every pair of antichains, and chains has more than 5000");
  EXPECT_NO_THROW(plan_pipedream(parallel_chains(2, 40), {.stages = 2}));
  expect_has(error_of([] {
               plan_pipedream(chain(3), {.stages = 2, .replicas = {.of_stage = {1, 1}}});
             }),
             "pipedream chooses by itself how many replicas");
}

TEST(PipeDream, IsDeterministic) {
  for (int seed = 0; seed < 50; ++seed) {
    const Profile profile = random_priced(seed);
    const PlanOptions options = {.stages = 4, .replicas = {.automatic = true}};
    EXPECT_EQ(plan_hash(plan_pipedream(profile, options)), plan_hash(plan_pipedream(profile, options)));
  }
}

// Antichains, and milliseconds of the slowest stage on 4 and 8 devices at a byte a nanosecond, straight and
// with replicas: from the published enumeration of antichains and recurrence, carried out in Python on the
// published profiles.
struct Published {
  const char* model;
  int64_t antichains;
  double straight_ms[2], replicated_ms[2];
};

class PipeDreamPublished : public ::testing::TestWithParam<Published> {};

TEST_P(PipeDreamPublished, ProfileGivesThePublishedPlan) {
  const auto& [model, antichains, straight_ms, replicated_ms] = GetParam();
  const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES");
  const std::string path = fmt::format("{}/{}.txt", folder ? folder : ".", model);
  if (!folder || !std::filesystem::exists(path))
    GTEST_SKIP() << "set ANTICHAIN_PIPEDREAM_PROFILES to a folder with " << model << ".txt";
  const Profile profile = read_profile(read_file(path), path);
  for (int i : {0, 1})
    for (bool replicas : {false, true}) {
      const PlanOptions options = {.stages = i == 0 ? 4 : 8,
                                   .cluster = one_link(byte_a_nanosecond),
                                   .objective = Objective::compute,
                                   .replicas = {.automatic = replicas}};
      const Plan plan = plan_pipedream(profile, options);
      validate(plan, profile);
      EXPECT_EQ(plan.states, antichains + 1);  // and the empty one
      EXPECT_NEAR(pipedream_cost_s(plan, profile, options) * 1e3, (replicas ? replicated_ms : straight_ms)[i],
                  1e-6);  // the figures have that many digits
    }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, PipeDreamPublished,
    ::testing::Values(Published{"vgg16", 40, {216.45, 159.531}, {175.732624, 93.51323}},
                      Published{"resnet18", 100, {69.523, 35.207}, {65.918, 33.883}},
                      Published{"resnet50", 240, {111.497, 56.684}, {111.497, 56.315324}},
                      Published{"resnet101", 410, {103.941, 52.125}, {103.941, 52.125}},
                      Published{"alexnet", 22, {28.721, 28.721}, {23.165752, 11.62}},
                      Published{"resnext50", 240, {151.988, 76.095}, {151.622572, 75.101}},
                      Published{"resnext101", 410, {140.525, 71.01}, {140.525, 71.01}},
                      Published{"densenet121", 430, {81.985, 41.615}, {81.985, 41.615}},
                      Published{"squeezenet1_0", 99, {72.954, 51.094}, {72.328842667, 35.96306112}}),
    [](const auto& info) { return std::string(info.param.model); });

}  // namespace
}  // namespace antichain
