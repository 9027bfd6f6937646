// The exact planner is compared with everything tried: all nested sequences of node sets, and all ways to
// hand out devices. The test shares nothing with the planner but the formulas of partition/plan/stage_cost.h.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "partition/plan/finish_plan.h"
#include "partition/planners/planner.h"
#include "tests/partition/networks.h"

namespace antichain {
namespace {

using namespace test;
constexpr int64_t no_plan = std::numeric_limits<int64_t>::max();

class Exhaustive {
 public:
  Exhaustive(const Profile& profile, const PlanOptions& options)
      : profile_(profile), options_(options), sets_(test::down_sets(profile)) {
    const size_t devices =
        options.cluster.devices.empty() ? size_t(wanted()) : options.cluster.devices.size();
    all_devices_ = (Mask(1) << devices) - 1;
  }

  // Returns the smallest bottleneck of any plan that fits, or `no_plan` when none does.
  int64_t best() {
    int64_t best = no_plan;
    for (int devices = options_.at_most ? 1 : wanted(); devices <= wanted(); ++devices) {
      devices_ = devices;
      known_.clear();
      best = std::min(best, from(0, 0, 0, 0));
    }
    return best;
  }
  // Returns the smallest memory per device with which something fits.
  int64_t least_memory() {
    int64_t best = no_plan;
    memory_ = true;
    for (int devices = options_.at_most ? 1 : wanted(); devices <= wanted(); ++devices) {
      devices_ = devices;
      known_.clear();
      best = std::min(best, from(0, 0, 0, 0));
    }
    memory_ = false;
    return best;
  }

 private:
  int wanted() const {
    const std::vector<int>& r = options_.replicas.of_stage;
    return r.empty() ? options_.stages : std::accumulate(r.begin(), r.end(), 0);
  }

  static std::vector<int> members(Mask set) {
    std::vector<int> result;
    for (int i = 0; set >> i; ++i)
      if (set >> i & 1) result.push_back(i);
    return result;
  }

  // `done` nodes on `used` devices, the last stage's of which are `last`.
  int64_t from(Mask done, Mask used, Mask last, int stage) {
    const int taken = __builtin_popcount(used);
    if (taken == devices_) return done == sets_.back() ? 0 : no_plan;
    const auto [known, fresh] = known_.try_emplace({done, used, last}, no_plan);
    if (!fresh) return known->second;
    int64_t best = no_plan;
    for (Mask set : sets_) {
      if ((set & done) != done || set == done) continue;
      for (Mask crew = all_devices_ & ~used; crew; crew = (crew - 1) & all_devices_ & ~used) {
        const int r = __builtin_popcount(crew);
        if (!may_have(stage, r) || taken + r > devices_) continue;
        // Devices are equal, so the first that are free are taken.
        if (options_.cluster.devices.empty() && crew != (((Mask(1) << (taken + r)) - 1) & ~used)) continue;
        int64_t cost = stage_cost(set & ~done, crew, devices_ - taken);
        if (done != 0 && cost != no_plan && !memory_) cost = std::max(cost, boundary_cost(done, last | crew));
        if (cost >= best) continue;
        const int64_t rest = from(set, used | crew, crew, stage + 1);
        best = std::min(best, rest == no_plan ? no_plan : std::max(cost, rest));
      }
    }
    return known_[{done, used, last}] = best;
  }

  bool may_have(int stage, int r) const {
    const Replicas& replicas = options_.replicas;
    if (replicas.off()) return r == 1;
    if (replicas.automatic) return r <= options_.microbatches;
    return stage < int(replicas.of_stage.size()) && replicas.of_stage[stage] == r;
  }

  int64_t stage_cost(Mask nodes, Mask crew, int devices_left) const {
    const std::vector<int> devices = members(crew);
    const int r = int(devices.size());
    double speed = 1e9;
    for (int d : devices) speed = std::min(speed, options_.cluster.device(d).speed);
    int64_t work = 0, gradient = 0, held = 0, kept = 0, weights = 0;
    for (int n : members(nodes)) {
      const NodeCost& cost = profile_.nodes[n].cost;
      work += work_ns(cost, speed);
      gradient += gradient_ns(cost.param_bytes, options_.cluster.link(devices), options_.microbatches);
      held += 2 * cost.param_bytes + cost.prepared_bytes;  // and once more what the optimiser keeps
      kept += kept_bytes(cost);
      weights += cost.param_bytes;
    }
    const int64_t all = held + options_.in_flight({options_.microbatches, devices_, devices_left, r}) * kept;
    const int64_t slots = (options_.shard_optimiser ? 1 : r) * weights;   // of all replicas
    const int64_t bytes = all + (slots + weights * (r - 1) + r - 1) / r;  // rounded up
    if (memory_) return bytes;
    for (int d : devices)
      if (int64_t limit = options_.cluster.device(d).memory_bytes; limit > 0 && bytes > limit) return no_plan;
    return stage_ns(work, gradient, r);
  }

  int64_t boundary_cost(Mask done, Mask devices) const {
    if (options_.objective == Objective::compute) return 0;
    int64_t bytes = 0;
    int tensors = 0;
    for (int n : members(done)) {
      bool crosses = false;
      for (size_t v = 0; v < profile_.nodes.size(); ++v)
        for (int u : profile_.nodes[v].inputs) crosses |= u == n && !(done >> v & 1);
      if (!crosses) continue;
      bytes += profile_.nodes[n].cost.output_bytes;
      ++tensors;
    }
    return transfer_ns(bytes, tensors, options_.cluster.link(members(devices)));
  }

  const Profile& profile_;
  const PlanOptions& options_;
  Mask all_devices_ = 0;
  int devices_ = 0;
  bool memory_ = false;
  const std::vector<Mask> sets_;
  std::map<std::tuple<Mask, Mask, Mask>, int64_t> known_;
};

Profile priced(int seed, int nodes) {
  Profile profile = random_network(seed, nodes);
  std::mt19937 random(seed);
  for (ProfileNode& node : profile.nodes) {
    node.cost.param_bytes = random() % 40;
    node.cost.prepared_bytes = node.cost.param_bytes % 3;
    node.cost.stash_bytes = random() % 7;
    node.cost.keeps_output = random() % 2;
  }
  return profile;
}

struct Counts {
  int plans = 0, refused = 0, proved = 0;
};

// Expects equal bottlenecks, equal feasibility, a valid plan that fits, and the smallest memory in the
// refusal.
void compare(const Profile& profile, const PlanOptions& options, Counts& counts) {
  Exhaustive exhaustive(profile, options);
  const int64_t best = exhaustive.best();
  if (best == no_plan) {
    const int64_t bytes = exhaustive.least_memory();  // `no_plan`: more devices than nodes x micro-batches
    expect_has(error_of([&] { plan_antichain(profile, options); }),
               bytes == no_plan ? "each on at most" : "would do is " + std::to_string(bytes) + " bytes");
    ++counts.refused;
    return;
  }
  const Plan plan = plan_antichain(profile, options);
  ASSERT_NO_THROW(validate(plan, profile));
  ASSERT_EQ(std::llround(plan.bottleneck_s * 1e9), best);
  ASSERT_EQ(rank_that_does_not_fit(plan, options.cluster), -1);
  ASSERT_TRUE(plan.proved_optimal());
  ++counts.plans;
  counts.proved += plan.lower_bound_s < plan.bottleneck_s * 1.0000001;
}

using Vary = std::function<void(std::mt19937&, const Profile&, PlanOptions&)>;

Counts sweep(int seeds, int nodes, int most_stages, const Vary& vary) {
  Counts counts;
  for (int seed = 0; seed < seeds; ++seed) {
    const Profile profile = priced(seed, nodes);
    if (profile.nodes.size() > 16) continue;  // or trying all subsets takes seconds
    std::mt19937 random(seed);
    for (const Objective objective : {Objective::compute, Objective::compute_or_transfer}) {
      PlanOptions options = {.stages = 1 + int(random() % std::min(most_stages, compute_nodes(profile))),
                             .cluster = one_link(byte_a_nanosecond),
                             .objective = objective,
                             .microbatches = 1 + int(random() % 9)};
      vary(random, profile, options);
      SCOPED_TRACE(::testing::Message()
                   << "seed " << seed << " " << name_of(objective) << " stages " << options.stages);
      compare(profile, options, counts);
      if (::testing::Test::HasFatalFailure()) return counts;
    }
  }
  return counts;
}

void give_memory(std::mt19937& random, const Profile& profile, PlanOptions& options) {
  int64_t all = 1;
  for (const ProfileNode& node : profile.nodes) all += held_bytes(node.cost) + 2 * kept_bytes(node.cost);
  for (Device& device : options.cluster.devices)
    device.memory_bytes = random() % 4 ? 1 + int64_t(random() % all) : 0;
}

void give_speeds_and_nodes(std::mt19937& random, PlanOptions& options) {
  for (Device& device : options.cluster.devices) {
    device.speed = std::vector<double>{0.05, 0.5, 1, 1.5, 8}[random() % 5];
    device.node = int(random() % 3);
  }
  options.cluster.between_nodes = {.bytes_per_s = 3e8, .latency_s = 2e-9};
}

TEST(Exhaustive, AtMostSoManyStages) {
  const Counts counts = sweep(500, 9, 5, [](std::mt19937&, const Profile&, PlanOptions& options) {
    options.stages += 2;
    options.at_most = true;
  });
  EXPECT_GT(counts.plans, 900);
}

TEST(Exhaustive, MemoryLimits) {
  const Counts counts =
      sweep(700, 9, 4, [](std::mt19937& random, const Profile& profile, PlanOptions& options) {
        options.cluster = equal_devices(options.stages, byte_a_nanosecond);
        if (random() % 3 == 0) options.in_flight = all_in_flight;
        options.at_most = random() % 3 == 0;
        give_memory(random, profile, options);
      });
  EXPECT_GT(counts.plans, 300);
  EXPECT_GT(counts.refused, 300);
}

TEST(Exhaustive, AutomaticReplicas) {
  const Counts counts = sweep(600, 8, 5, [](std::mt19937& random, const Profile&, PlanOptions& options) {
    options.stages = 1 + int(random() % 5);  // devices: may be more than nodes
    options.replicas.automatic = true;
    if (random() % 3 == 0) options.cluster = one_link({});
    options.at_most = random() % 4 == 0;
  });
  EXPECT_GT(counts.plans, 1000);
}

TEST(Exhaustive, ReplicasPerStageWithMemory) {
  const Counts counts =
      sweep(800, 8, 3, [](std::mt19937& random, const Profile& profile, PlanOptions& options) {
        for (int s = 0; s < options.stages; ++s) options.replicas.of_stage.push_back(1 + int(random() % 2));
        options.cluster = equal_devices(6, byte_a_nanosecond);
        options.shard_optimiser = random() % 2;
        if (random() % 2) give_memory(random, profile, options);
      });
  EXPECT_GT(counts.plans, 400);
  EXPECT_GT(counts.refused, 50);
}

TEST(Exhaustive, DifferentDevicesAndLinks) {
  const Counts counts =
      sweep(500, 7, 4, [](std::mt19937& random, const Profile& profile, PlanOptions& options) {
        options.cluster =
            equal_devices(options.stages + int(random() % 2), byte_a_nanosecond);  // one may stay idle
        give_speeds_and_nodes(random, options);
        if (random() % 3 == 0) give_memory(random, profile, options);
        options.at_most = random() % 4 == 0;
      });
  EXPECT_GT(counts.plans, 600);
  EXPECT_GT(counts.refused, 20);
}

TEST(Exhaustive, DifferentDevicesWithReplicas) {
  const Counts counts =
      sweep(400, 6, 4, [](std::mt19937& random, const Profile& profile, PlanOptions& options) {
        options.stages = 1 + int(random() % 4);
        options.cluster = equal_devices(options.stages, byte_a_nanosecond);
        options.replicas.automatic = true;
        options.shard_optimiser = random() % 2;
        give_speeds_and_nodes(random, options);
        if (random() % 3 == 0) give_memory(random, profile, options);
      });
  EXPECT_GT(counts.plans, 500);
  EXPECT_GT(counts.refused, 20);
}

TEST(Exhaustive, EightDifferentDevices) {
  Counts counts;
  std::mt19937 random(8);
  for (int seed = 0; seed < 12; ++seed) {
    const Profile profile = chain(9);
    Profile uneven = profile;
    for (ProfileNode& node : uneven.nodes) node.cost.forward_s = double(random() % 50) * 1e-9;
    PlanOptions options = {.stages = 8, .cluster = equal_devices(8, byte_a_nanosecond)};
    for (int d = 0; d < 8; ++d) options.cluster.devices[d] = {.speed = 0.5 + 0.25 * d, .node = d / 2};
    options.cluster.between_nodes = {.bytes_per_s = 2e8};
    compare(uneven, options, counts);
  }
  EXPECT_EQ(counts.plans, 12);
}

}  // namespace
}  // namespace antichain
