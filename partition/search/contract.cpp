#include "partition/search/contract.h"

#include <algorithm>
#include <map>

namespace antichain {

CutGraph grouped(const CutGraph& graph, const std::vector<int>& group, int groups) {
  CutGraph result;
  result.nodes.resize(size_t(groups)), result.inputs.resize(size_t(groups)),
      result.consumers.resize(size_t(groups));
  for (auto* values : {&result.work_ns, &result.output_bytes, &result.param_bytes, &result.held_bytes,
                       &result.kept_bytes, &result.slot_bytes})
    values->assign(size_t(groups), 0);
  result.output_tensors.assign(size_t(groups), 0);
  for (int v = 0; v < graph.size(); ++v) {
    const int g = group[v];
    result.nodes[g].insert(result.nodes[g].end(), graph.nodes[v].begin(), graph.nodes[v].end());
    result.work_ns[g] += graph.work_ns[v];
    result.param_bytes[g] += graph.param_bytes[v];
    result.held_bytes[g] += graph.held_bytes[v];
    result.kept_bytes[g] += graph.kept_bytes[v];
    result.slot_bytes[g] += graph.slot_bytes[v];
    // What leaves the group is its last node's output in a chain, and all outputs of branches.
    const bool leaves = std::any_of(graph.consumers[v].begin(), graph.consumers[v].end(),
                                    [&](int after) { return group[after] != g; });
    if (!leaves) continue;
    result.output_bytes[g] += graph.output_bytes[v];
    result.output_tensors[g] += graph.output_tensors[v];
    for (int after : graph.consumers[v])
      if (group[after] != g)
        result.consumers[g].push_back(group[after]), result.inputs[group[after]].push_back(g);
  }
  for (auto* lists : {&result.inputs, &result.consumers})
    for (std::vector<int>& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  return result;
}

namespace {

// Components numbers the strongly connected components of a graph, in a topological order of theirs (Tarjan,
// "Depth-First Search and Linear Graph Algorithms", SIAM Journal on Computing 1972).
class Components {
 public:
  explicit Components(const std::vector<std::vector<int>>& next)
      : next_(next), number_(next.size(), -1), low_(next.size()), of(next.size(), -1) {
    for (int v = int(next.size()) - 1; v >= 0; --v)
      if (number_[size_t(v)] < 0) visit(v);
    for (int& component : of) component = count - 1 - component;  // they end in the opposite order
  }

 private:
  void visit(int v) {
    number_[size_t(v)] = low_[size_t(v)] = numbered_++;
    open_.push_back(v);
    for (int w : next_[size_t(v)]) {
      if (number_[size_t(w)] < 0) visit(w);
      if (of[size_t(w)] < 0) low_[size_t(v)] = std::min(low_[size_t(v)], low_[size_t(w)]);
    }
    if (low_[size_t(v)] < number_[size_t(v)]) return;
    for (int w = -1; w != v; open_.pop_back()) of[size_t(w = open_.back())] = count;
    ++count;
  }

  const std::vector<std::vector<int>>& next_;
  std::vector<int> number_, low_, open_;
  int numbered_ = 0;

 public:
  std::vector<int> of;
  int count = 0;
};

// A node joins the group of its only input where it is that one's only consumer. Groups keep the graph order
// of their first nodes: every other input of the group comes earlier than that.
CutGraph merge_chains(const CutGraph& graph, int64_t most_work_ns) {
  std::vector<int> group(size_t(graph.size()), -1);
  std::vector<int64_t> work;
  for (int v = 0; v < graph.size(); ++v) {
    if (graph.inputs[v].size() == 1) {
      const int before = graph.inputs[v][0];
      if (graph.consumers[before].size() == 1 && work[group[before]] + graph.work_ns[v] <= most_work_ns) {
        group[v] = group[before];
        work[group[v]] += graph.work_ns[v];
        continue;
      }
    }
    group[v] = int(work.size());
    work.push_back(graph.work_ns[v]);
  }
  return grouped(graph, group, int(work.size()));
}

// A node joins the latest group with the same one input and the same one consumer.
CutGraph merge_branches(const CutGraph& graph, int64_t most_work_ns) {
  std::vector<int> group(size_t(graph.size()), -1);
  std::vector<int64_t> work;
  std::map<std::pair<int, int>, int> latest;
  for (int v = 0; v < graph.size(); ++v) {
    group[v] = int(work.size());
    if (graph.inputs[v].size() == 1 && graph.consumers[v].size() == 1) {
      const auto [place, fresh] = latest.try_emplace({graph.inputs[v][0], graph.consumers[v][0]}, group[v]);
      if (!fresh && work[place->second] + graph.work_ns[v] <= most_work_ns) group[v] = place->second;
      place->second = group[v];
    }
    if (group[v] == int(work.size())) work.push_back(0);
    work[group[v]] += graph.work_ns[v];
  }
  return grouped(graph, group, int(work.size()));
}

}  // namespace

CutGraph merge(const CutGraph& graph, const std::vector<std::vector<int>>& together) {
  std::map<int, int> set_of;  // by profile node
  for (size_t i = 0; i < together.size(); ++i)
    for (const int n : together[i]) set_of[n] = int(i);
  std::map<int, int> group_of;  // by set
  std::vector<int> group(size_t(graph.size()));
  int groups = 0;
  for (int v = 0; v < graph.size(); ++v) {
    const auto set = set_of.find(graph.nodes[v][0]);
    group[v] = set == set_of.end() ? groups : group_of.try_emplace(set->second, groups).first->second;
    groups = std::max(groups, group[v] + 1);
  }
  CutGraph merged = grouped(graph, group, groups);
  // Each set follows the one before it.
  for (auto set = group_of.begin(), next = set; set != group_of.end() && ++next != group_of.end();
       set = next) {
    std::vector<int>&inputs = merged.inputs[next->second], &consumers = merged.consumers[set->second];
    if (std::ranges::binary_search(inputs, set->second)) continue;
    inputs.insert(std::ranges::upper_bound(inputs, set->second), set->second);
    consumers.insert(std::ranges::upper_bound(consumers, next->second), next->second);
  }
  return merged;
}

CutGraph sitting_together(const CutGraph& graph, const std::vector<std::vector<int>>& sets) {
  if (sets.empty()) return graph;
  std::map<int, int> node_of;  // by profile node
  for (int v = 0; v < graph.size(); ++v)
    for (int n : graph.nodes[v]) node_of[n] = v;
  // A cycle through its nodes holds each set together.
  std::vector<std::vector<int>> next = graph.consumers;
  for (const std::vector<int>& set : sets)
    for (size_t i = 0; i < set.size(); ++i)
      next[size_t(node_of.at(set[i]))].push_back(node_of.at(set[(i + 1) % set.size()]));
  const Components components(next);
  CutGraph result = grouped(graph, components.of, components.count);
  for (std::vector<int>& nodes : result.nodes) std::ranges::sort(nodes);
  return result;
}

CutGraph contract(const CutGraph& graph, Contraction how, int64_t most_work_ns) {
  CutGraph smaller = merge_chains(graph, most_work_ns);
  for (int before = graph.size(); how == Contraction::chains_and_branches && smaller.size() < before;) {
    before = smaller.size();
    smaller = merge_chains(merge_branches(smaller, most_work_ns), most_work_ns);
  }
  return smaller;
}

}  // namespace antichain
