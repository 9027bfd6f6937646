// All plans of a small network: every cut, and where they may recompute, every choice of what is computed
// again.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "partition/plan/finish_plan.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/simulate/simulate.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {

// A chain or another network of 3 nodes to so many, with uneven times and bytes.
inline Profile uneven_network(std::mt19937& random, bool as_chain, int most_nodes) {
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  Profile profile = as_chain ? chain(pick(3, most_nodes + 1)) : random_network(random, pick(3, most_nodes));
  for (ProfileNode& node : profile.nodes) {
    node.cost.output_bytes = pick(1, 1000);
    if (node.role == Role::input) continue;
    node.cost.forward_s = pick(1, 9), node.cost.backward_input_s = pick(1, 9);
    node.cost.param_bytes = pick(0, 300);
    node.cost.stash_bytes = pick(0, 1) * pick(1, 1000);
    node.cost.keeps_output = pick(0, 1) > 0;
  }
  return profile;
}

// Calls f(stages, stage of each node, or −1) for every way to cut the network into so many stages that keeps
// together what sits together.
template <class F>
void for_each_cut(const Profile& profile, int count, const F& f) {
  std::vector<int> stage_of(profile.nodes.size(), -1);
  const auto keeps = [&](const std::vector<int>& set) {
    return std::ranges::all_of(set, [&](int n) { return stage_of[size_t(n)] == stage_of[size_t(set[0])]; });
  };
  const std::function<void(size_t)> cut = [&](size_t n) {
    if (n == stage_of.size()) {
      std::vector<std::vector<int>> stages(static_cast<size_t>(count));
      for (size_t node = 0; node < n; ++node)
        if (stage_of[node] >= 0) stages[size_t(stage_of[node])].push_back(int(node));
      if (std::ranges::none_of(stages, &std::vector<int>::empty) &&
          std::ranges::all_of(profile.together, keeps))
        f(stages, stage_of);
      return;
    }
    if (profile.nodes[n].role == Role::input) return cut(n + 1);
    int first = 0;
    for (const int input : profile.nodes[n].inputs) first = std::max(first, stage_of[size_t(input)]);
    for (int s = first; s < count; ++s) {
      stage_of[n] = s;
      cut(n + 1);
    }
  };
  cut(0);
}

// Has some nodes sit together, but for where the network can't be cut into so many stages then.
inline void sit_together(std::mt19937& random, Profile& profile, int stages) {
  sit_together(random, profile);
  bool cut = false;
  for_each_cut(profile, stages, [&](const auto&, const auto&) { cut = true; });
  if (!cut) profile.together.clear();
}

enum class Counted { formula, program };

class AllPlans {
 public:
  AllPlans(const Profile& profile, PlanOptions options, const Policy& policy, Counted counted)
      : profile_(profile), options_(std::move(options)), policy_(policy), counted_(counted) {
    options_.in_flight = policy.in_flight_on(options_.stages, 1, options_.microbatches);
    for_each_cut(profile, options_.stages,
                 [&](const auto& stages, const std::vector<int>& stage_of) { choose(stages, stage_of); });
  }

  int64_t least_bytes() const { return std::ranges::min(tried_, {}, &Tried::bytes).bytes; }
  int64_t most_bytes() const { return std::ranges::max(tried_, {}, &Tried::bytes).bytes; }
  // Returns the shortest step of those that fit.
  double best_s(int64_t limit) const {
    double best = std::numeric_limits<double>::infinity();
    for (const Tried& plan : tried_)
      if (plan.bytes <= limit) best = std::min(best, plan.step_s);
    return best;
  }

 private:
  struct Tried {
    int64_t bytes = 0;  // of the fullest device
    double step_s = 0;
  };

  void choose(const std::vector<std::vector<int>>& stages, const std::vector<int>& stage_of) {
    std::vector<int> may;
    for (size_t n = 0; n < stage_of.size(); ++n)
      if (options_.recompute && profile_.nodes[n].role == Role::compute) may.push_back(int(n));
    for (unsigned mask = 0; mask < 1u << may.size(); ++mask) {
      Plan plan = plan_of(profile_, stages);
      for (size_t i = 0; i < may.size(); ++i)
        if (mask >> i & 1) plan.stages[size_t(stage_of[size_t(may[i])])].recomputed.push_back(may[i]);
      plan = finish_plan(profile_, options_, plan.stages, plan.method, 0);
      tried_.push_back({bytes_of(plan), step_s(profile_, plan, policy_, options_.microbatches, {})});
    }
  }
  int64_t bytes_of(const Plan& plan) const {
    if (counted_ == Counted::program)
      return std::ranges::max(
          peak_memory_bytes(make_schedule(profile_, plan, policy_, options_.microbatches), plan, profile_));
    int64_t most = 0;
    for (const PlanStage& stage : plan.stages) most = std::max(most, stage.memory_bytes);
    return most;
  }

  const Profile& profile_;
  PlanOptions options_;
  const Policy& policy_;
  const Counted counted_;
  std::vector<Tried> tried_;
};

}  // namespace antichain::test
