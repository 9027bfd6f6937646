// Schedules in these tests are made of small priced networks and plans, which are built by hand.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "partition/plan/plan.h"

namespace antichain::test {

// Plans are compared to the picosecond, and sums in another order differ in their last bits.
constexpr double plan_rounding = 1e-11;

inline int pick(std::mt19937& random, int from, int to) {
  return from + int(random() % unsigned(to - from + 1));
}

inline ProfileNode node(std::string name, Role role, std::vector<int> inputs, bool needs_gradient,
                        NodeCost cost) {
  return {
      std::move(name), role == Role::input ? "input" : "op", role, std::move(inputs), needs_gradient, cost};
}

inline Profile empty_network() {
  Profile profile;
  profile.model = "test";
  profile.graph_hash = "hash";
  profile.device = "cpu";
  profile.microbatch = 4;
  return profile;
}

// image → n1 → n2 → … → n_length, which is the loss and uses the labels (the last node) as well.
inline Profile chain(int length,
                     NodeCost cost = {.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1}) {
  Profile profile = empty_network();
  profile.nodes.push_back(node("image", Role::input, {}, false, {}));
  profile.nodes.push_back(node("label", Role::input, {}, false, {}));
  for (int i = 1; i <= length; ++i) {
    const int before = i == 1 ? 0 : i;
    const bool last = i == length;
    profile.nodes.push_back(node(fmt::format("n{}", i), last ? Role::loss : Role::compute,
                                 last ? std::vector<int>{before, 1} : std::vector<int>{before}, true, cost));
  }
  return profile;
}

// Gives nodes up to 2 MB of weights, so that stages with replicas have several buckets of gradients.
inline void add_weights(Profile& profile, std::mt19937& random) {
  for (ProfileNode& node : profile.nodes)
    if (node.role != Role::input)
      node.cost.param_bytes = int64_t(random() % 3) * int64_t(random() % 1'000'000);
}

inline Plan plan_of(const Profile& profile, std::vector<std::vector<int>> stages,
                    std::vector<int> ranks = {}) {
  Plan plan{.model = profile.model, .graph_hash = profile.graph_hash, .method = "by hand"};
  for (size_t s = 0; s < stages.size(); ++s) {
    std::sort(stages[s].begin(), stages[s].end());
    plan.stages.push_back({stages[s], {ranks.empty() ? int(s) : ranks[s]}});
  }
  return plan;
}

// Returns the plan with so many ranks in each stage, numbered by stage, or as `ranks` says.
inline Plan replicated(Plan plan, const std::vector<int>& replicas, const std::vector<int>& ranks = {}) {
  int next = 0;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].ranks.clear();
    for (int i = 0; i < replicas[s]; ++i, ++next)
      plan.stages[s].ranks.push_back(ranks.empty() ? next : ranks[next]);
  }
  return plan;
}

// Returns the plan with 1 to `most` replicas a stage, and the ranks in any order.
inline Plan randomly_replicated(std::mt19937& random, Plan plan, int most) {
  std::vector<int> replicas;
  for (size_t s = 0; s < plan.stages.size(); ++s) replicas.push_back(1 + int(random() % most));
  std::vector<int> ranks(std::accumulate(replicas.begin(), replicas.end(), 0));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  return replicated(std::move(plan), replicas, ranks);
}

// Returns the plan of a chain of S nodes, one a stage.
inline Plan one_node_each(const Profile& profile, std::vector<int> ranks = {}) {
  std::vector<std::vector<int>> stages;
  for (int n = 0; n < int(profile.nodes.size()); ++n)
    if (profile.nodes[n].role != Role::input) stages.push_back({n});
  return plan_of(profile, stages, std::move(ranks));
}

// Returns a random network: several inputs per node, skips, some tensors that need no gradient (a stem
// without parameters), one loss that everything without a consumer flows into.
inline Profile random_network(std::mt19937& random, int nodes) {
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  Profile profile = empty_network();
  profile.nodes.push_back(node("image", Role::input, {}, false, {}));
  profile.nodes.push_back(node("label", Role::input, {}, false, {}));
  std::vector<bool> used(nodes + 2, false);
  for (int i = 2; i < nodes + 2; ++i) {
    std::vector<int> inputs;
    for (int k = pick(1, 3); k > 0; --k) inputs.push_back(i == 2 || pick(0, 9) == 0 ? 0 : pick(2, i - 1));
    bool gradient = pick(0, 3) > 0;  // whether it has parameters
    for (int x : inputs) gradient = gradient || profile.nodes[x].needs_gradient, used[x] = true;
    profile.nodes.push_back(node(fmt::format("n{}", i), Role::compute, inputs, gradient,
                                 {.forward_s = double(pick(1, 9)),
                                  .backward_input_s = double(pick(1, 9)),
                                  .backward_weight_s = double(pick(0, 9)),
                                  .output_bytes = pick(1, 1000)}));
  }
  std::vector<int> ends = {1};
  for (int i = 2; i < nodes + 2; ++i)
    if (!used[i]) ends.push_back(i);
  profile.nodes.push_back(node("loss", Role::loss, ends, true, {.forward_s = 1}));
  return profile;
}

// Has some nodes sit together, in one set or two.
inline void sit_together(std::mt19937& random, Profile& profile) {
  for (unsigned sets = 1 + unsigned(random() % 2); sets > 0; --sets) {
    std::vector<int> set;
    for (int n = 0; n < int(profile.nodes.size()); ++n)
      if (profile.nodes[size_t(n)].role != Role::input && random() % profile.nodes.size() < 2)
        set.push_back(n);
    if (set.size() > 1) profile.together.push_back(set);
  }
}

// Returns nested random down-sets: the nodes in a random topological order are cut into consecutive pieces.
// Stages then own node numbers with gaps, and a consumer with a higher number may sit on an earlier stage
// than a lower one.
inline Plan random_plan(std::mt19937& random, const Profile& profile, int stages) {
  const int n = int(profile.nodes.size());
  std::vector<bool> done(n, false);
  std::vector<int> order;
  for (int i = 0; i < n; ++i) done[i] = profile.nodes[i].role == Role::input;
  while (true) {
    std::vector<int> ready;
    for (int i = 0; i < n; ++i) {
      const auto& inputs = profile.nodes[i].inputs;
      if (!done[i] && std::all_of(inputs.begin(), inputs.end(), [&](int x) { return bool(done[x]); }))
        ready.push_back(i);
    }
    if (ready.empty()) break;
    order.push_back(ready[random() % ready.size()]);
    done[order.back()] = true;
  }
  std::vector<int> cuts(order.size() - 1);
  std::iota(cuts.begin(), cuts.end(), 1);
  std::shuffle(cuts.begin(), cuts.end(), random);
  cuts.resize(stages - 1);
  cuts.push_back(0), cuts.push_back(int(order.size()));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::vector<int>> nodes;
  for (int s = 0; s < stages; ++s) nodes.emplace_back(order.begin() + cuts[s], order.begin() + cuts[s + 1]);
  std::vector<int> ranks(stages);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::shuffle(ranks.begin(), ranks.end(), random);
  return plan_of(profile, nodes, ranks);
}

}  // namespace antichain::test
