// Plans for devices with profiles of their own, for nodes that sit together, and for the smallest largest
// load, are compared with a brute force that shares nothing with the search: it goes through every sequence
// of down-sets and devices, and adds up what the formulas say.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "partition/plan/plan_price.h"
#include "partition/planners/planner.h"
#include "partition/search/antichain_search.h"
#include "partition/search/bottleneck.h"
#include "partition/search/kind_crews.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;

constexpr int64_t nothing_fits = std::numeric_limits<int64_t>::max();

class EveryPlan {
 public:
  EveryPlan(const Profile& profile, const PlanOptions& options) : profile_(profile), options_(options) {
    for (size_t n = 0; n < profile.nodes.size(); ++n)
      if (profile.nodes[n].role != Role::input) nodes_.push_back(int(n));
  }

  int64_t best() {
    used_.assign(options_.cluster.devices.size(), false);
    go({}, 0, 0);
    return best_;
  }

 private:
  using Set = std::set<int>;

  void go(const Set& done, int stages, int64_t slowest) {
    if (done.size() == nodes_.size()) {
      if (stages == options_.stages || options_.at_most) best_ = std::min(best_, slowest);
      return;
    }
    if (stages == options_.stages) return;
    std::vector<int> rest;
    std::ranges::set_difference(nodes_, done, std::back_inserter(rest));
    for (unsigned mask = 1; mask < 1u << rest.size(); ++mask) {
      Set stage, after = done;
      for (size_t i = 0; i < rest.size(); ++i)
        if (mask >> i & 1) stage.insert(rest[i]), after.insert(rest[i]);
      if (!possible(stage, after)) continue;
      for (size_t d = 0; d < used_.size(); ++d) {
        if (used_[d]) continue;
        const int64_t ns = std::max(stage_ns(stage, options_.cluster.devices[d]), boundary_ns(after));
        if (ns == nothing_fits || std::max(ns, slowest) >= best_) continue;
        used_[d] = true;
        go(after, stages + 1, std::max(ns, slowest));
        used_[d] = false;
      }
    }
  }

  bool possible(const Set& stage, const Set& after) const {
    for (int n : stage)
      for (int u : profile_.nodes[size_t(n)].inputs)
        if (profile_.nodes[size_t(u)].role != Role::input && !after.contains(u)) return false;
    for (const std::vector<int>& set : profile_.together) {
      const auto in = std::ranges::count_if(set, [&](int n) { return stage.contains(n); });
      if (in != 0 && in != std::ssize(set)) return false;
    }
    return true;
  }

  int64_t stage_ns(const Set& stage, const Device& device) const {
    const Profile& times = options_.cluster.profile(device.profile, profile_);
    int64_t ns = 0, sent = 0, bytes = 0;
    for (int n : stage) {
      const ProfileNode& node = times.nodes[size_t(n)];
      if (node.barred) return nothing_fits;
      ns += std::llround(double(std::llround(node.cost.compute_s() * 1e9)) / device.speed);
      bytes += profile_.nodes[size_t(n)].cost.frozen_bytes;
    }
    if (device.memory_bytes > 0 && bytes > device.memory_bytes) return nothing_fits;
    for (const SentTensor& tensor : profile_.sent_tensors()) {
      const auto here = std::ranges::count_if(tensor.nodes, [&](int n) { return stage.contains(n); });
      if (here > 0 && here < std::ssize(tensor.nodes) && !device.host) sent += tensor.bytes;
    }
    return options_.objective == Objective::load              ? ns + sent
           : options_.objective == Objective::overlapped_load ? std::max(ns, sent)
                                                              : ns;
  }

  int64_t boundary_ns(const Set& before) const {
    if (options_.objective != Objective::compute_or_transfer) return 0;
    int64_t bytes = 0;
    for (int n : before) {
      const auto reads_it = [&](int c) {
        return !before.contains(c) && std::ranges::count(profile_.nodes[size_t(c)].inputs, n) > 0;
      };
      if (std::ranges::any_of(nodes_, reads_it)) bytes += profile_.nodes[size_t(n)].cost.output_bytes;
    }
    return 2 * bytes;
  }

  const Profile& profile_;
  const PlanOptions& options_;
  std::vector<int> nodes_;
  std::vector<bool> used_;
  int64_t best_ = nothing_fits;
};

// Returns a small network in which some nodes sit together, some have memory, and tensors are listed now and
// then.
Profile constrained_network(std::mt19937& random, uint64_t seed) {
  const auto below = [&](int end) { return int(random() % unsigned(end)); };
  Profile profile = random_network(seed, 7);
  std::vector<int> nodes;
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (profile.nodes[n].role == Role::input) continue;
    nodes.push_back(int(n));
    NodeCost& cost = profile.nodes[n].cost;
    cost = {.forward_s = below(4) * 1e-6, .output_bytes = below(3) * 1000, .frozen_bytes = below(4)};
  }
  const auto some = [&] {
    std::vector<int> set;
    for (int n : nodes)
      if (below(3) == 0) set.push_back(n);
    return set;
  };
  if (std::vector<int> set = some(); set.size() > 1 && below(2)) profile.together.push_back(set);
  if (below(2)) {
    profile.sent.emplace();
    for (int i = 0; i < 5; ++i)
      if (std::vector<int> set = some(); set.size() > 1) profile.sent->push_back({set, below(4) * 700});
  }
  return profile;
}

// Returns two or three kinds of devices, four devices at most.
Cluster cluster_of_kinds(std::mt19937& random, const Profile& profile) {
  const auto below = [&](int end) { return int(random() % unsigned(end)); };
  Cluster cluster = one_link(byte_a_nanosecond);
  for (int kind = 0; kind < 1 + below(2); ++kind) {
    auto times = std::make_shared<Profile>(profile);
    for (ProfileNode& node : times->nodes) {
      node.cost.forward_s = below(8) * 1e-6;
      node.barred = node.role != Role::input && below(8) == 0;
    }
    cluster.profiles.push_back({"kind", "kind.json", times});
  }
  for (int d = 0; d < 2 + below(3); ++d)
    cluster.devices.push_back({.speed = below(3) ? 1 : 0.5,
                               .memory_bytes = below(2) ? 0 : 6 + below(4),
                               .profile = below(int(cluster.profiles.size()) + 1) - 1,
                               .host = below(3) == 0});
  return cluster;
}

TEST(Kinds, BestPlanIsThatOfAllPlans) {
  int fitting = 0, none = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const Profile profile = constrained_network(random, seed);
    PlanOptions options{.at_most = random() % 2 == 0, .cluster = cluster_of_kinds(random, profile)};
    options.stages = std::min(1 + int(random() % options.cluster.devices.size()), compute_nodes(profile));
    for (Objective objective :
         {Objective::compute, Objective::compute_or_transfer, Objective::load, Objective::overlapped_load}) {
      options.objective = objective;
      const int64_t expected = EveryPlan(profile, options).best();
      if (expected == nothing_fits) {
        ++none;
        EXPECT_THROW(plan_antichain(profile, options), Error) << "seed " << seed << " " << name_of(objective);
        continue;
      }
      ++fitting;
      const Plan plan = plan_antichain(profile, options);
      ASSERT_NO_THROW(validate(plan, profile)) << "seed " << seed;
      EXPECT_EQ(std::llround(plan.bottleneck_s * 1e9), expected)
          << "seed " << seed << " " << name_of(objective);
      EXPECT_EQ(std::llround(plan.lower_bound_s * 1e9), expected)
          << "seed " << seed << " " << name_of(objective);
    }
  }
  EXPECT_GT(fitting, 800);
  EXPECT_GT(none, 50);
}

TEST(Kinds, ProfilesOfOtherNetworksAreRefused) {
  const Profile own = chain(3);
  PlanOptions options{.stages = 2, .objective = Objective::compute};
  options.cluster.profiles = {{"a", "a.json", std::make_shared<Profile>(chain(4))}};
  options.cluster.devices = {{}, {.profile = 0}};
  expect_has(error_of([&] { plan_antichain(own, options); }), "a.json is not a profile of the network");
}

TEST(Kinds, ReplicasOfAStageHaveOneProfile) {
  auto slow = std::make_shared<Profile>(chain(1));
  slow->nodes[0].cost.forward_s *= 10;
  PlanOptions options{.stages = 4, .objective = Objective::compute, .replicas = {.automatic = true}};
  options.cluster = one_link({});
  options.cluster.profiles = {{"slow", "slow.json", slow}};
  options.cluster.devices = {{}, {}, {.profile = 0}, {.profile = 0}};
  expect_has(error_of([&] { plan_antichain(chain(1), options); }),
             "the replicas of a stage have one profile");
}

// Crews that prices and labels find, beside the search of all placements.
TEST(Kinds, CrewsAreAsGoodAsThoseOfAllPlacements) {
  int tried = 0, found = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Profile profile = random_network(seed, 6);
    if (compute_nodes(profile) < 4) continue;
    PlanOptions options{.objective = Objective::compute, .replicas = {.automatic = true}, .microbatches = 8};
    options.cluster = one_link(seed % 3 == 0 ? byte_a_nanosecond : Link());
    for (int kind = 0; kind < 2 + int(seed % 2); ++kind) {
      auto times = std::make_shared<Profile>(profile);
      for (ProfileNode& node : times->nodes) node.cost.forward_s = double(1 + random() % 900) * 1e-5;
      options.cluster.profiles.push_back({"kind", "kind.json", times});
      for (unsigned count = 1 + random() % 3; count > 0; --count)
        options.cluster.devices.push_back({.profile = kind});
    }
    options.stages = int(options.cluster.devices.size());
    AntichainSearch search(profile, options);
    const Solution best = search.best();
    ASSERT_EQ(search.lower_bound_ns(), best.bottleneck_ns);
    ++tried;
    const KindCrews crews = crews_by_kind(*search.whole(), profile, options, 1);
    EXPECT_LE(crews.lower_bound_ns, best.bottleneck_ns);
    if (crews.crews.empty()) continue;
    const PlacementDag placements = PlacementDag::of_crews(options, crews.crews);
    BottleneckSearch own(*search.whole(), placements, profile, options);
    const int64_t bottleneck = own.minimum(1, own.most());
    EXPECT_GE(bottleneck, best.bottleneck_ns);
    EXPECT_LE(double(bottleneck), double(best.bottleneck_ns) * 1.001);
    ++found;
  }
  EXPECT_GT(tried, 50);
  EXPECT_GE(found, tried * 9 / 10);
}

// 1,024 devices of six kinds: more than can be placed in every way.
TEST(Kinds, OfAThousandDevicesArePlannedWithin3PerCentOfTheBound) {
  const Profile own = chain(26);
  PlanOptions options{.stages = 1024, .objective = Objective::compute, .replicas = {.automatic = true}};
  options.microbatches = 1024;
  options.cluster = one_link({});
  for (int kind = 0; kind < 6; ++kind) {
    auto times = std::make_shared<Profile>(own);
    for (ProfileNode& node : times->nodes)
      node.cost.forward_s = (40 + 17 * kind + (node.inputs.empty() ? 0 : 3 * kind)) * 1e-3;
    options.cluster.profiles.push_back({"kind", "kind.json", times});
    for (int count = 170 + (kind < 4); count > 0; --count)
      options.cluster.devices.push_back({.profile = kind});
  }
  const Plan plan = plan_antichain(own, options);
  EXPECT_NO_THROW(validate(plan, own));
  EXPECT_EQ(plan.ranks(), 1024);
  EXPECT_LT(plan.gap(), 0.03);
}

// Twice as slow in every node is half a device.
TEST(Kinds, DevicesCountByTheirTimes) {
  const Profile own = chain(6);
  auto slow = std::make_shared<Profile>(own);
  for (ProfileNode& node : slow->nodes) node.cost.forward_s *= 2, node.cost.backward_input_s *= 2;
  PlanOptions options{.stages = 4, .replicas = {.automatic = true}};
  options.cluster.profiles = {{"slow", "slow.json", slow}};
  options.cluster.devices = {{}, {}, {.profile = 0}, {.profile = 0}};
  const int64_t all_ns = 6 * 3000, bound_ns = bound_without_search_ns(own, options, 4);
  EXPECT_GE(bound_ns, all_ns / 3 - 1);
  EXPECT_LE(bound_ns, all_ns / 3);
}

// Three nodes in a row, whose ends sit together: the one between them is with them.
TEST(SittingTogether, TakesInWhatIsBetween) {
  Profile profile = chain(4);
  profile.together = {{1, 3}};
  const PlanOptions options{.stages = 2, .objective = Objective::compute};
  EXPECT_EQ(plan_antichain(profile, options).stages[0].nodes, (std::vector<int>{1, 2, 3}));
  Plan apart = plan_uniform(profile, options);
  expect_has(error_of([&] { validate(apart, profile); }), "but they sit together");
}

// A tensor that passes a stage by is not charged there, and one with two readers is charged once.
TEST(Load, ChargesATensorWhereItIsProducedAndUsed) {
  Profile profile;
  add(profile, {}, 1000, 0, 500);
  add(profile, {0}, 1000, 0, 300);
  add(profile, {0, 1}, 1000, 0, 70);
  add(profile, {0}, 1000, 0, 0);
  Plan plan = finish_plan(
      profile, {.stages = 1, .objective = Objective::compute},
      {{.nodes = {0}, .ranks = {0}}, {.nodes = {1}, .ranks = {1}}, {.nodes = {2, 3}, .ranks = {2}}}, "", 0);
  PlanOptions options{.stages = 3, .objective = Objective::load};
  options.cluster = one_link(byte_a_nanosecond);
  const std::vector<StagePrice> prices = price(plan, profile, options);
  EXPECT_EQ(prices[0].sent_ns, 2 * 500);
  EXPECT_EQ(prices[1].sent_ns, 2 * (500 + 300));
  EXPECT_EQ(prices[2].sent_ns, 2 * (500 + 300));
}

}  // namespace
}  // namespace antichain
