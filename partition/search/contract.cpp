#include "partition/search/contract.h"

#include <algorithm>
#include <map>

#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

// Adds what other groups use of a tensor.
void add_output(CutGraph& result, const std::vector<int>& group, int of, const CutGraph::Output& output) {
  std::vector<int> users;
  for (const int v : output.consumers)
    if (group[v] != of) users.push_back(group[v]);
  if (users.empty()) return;
  std::ranges::sort(users);
  users.erase(std::unique(users.begin(), users.end()), users.end());
  std::vector<CutGraph::Output>& outputs = result.outputs[of];
  const auto same = std::ranges::find(outputs, users, &CutGraph::Output::consumers);
  if (same == outputs.end())
    outputs.push_back({output.bytes, output.tensors, std::move(users)});
  else
    same->bytes += output.bytes, same->tensors += output.tensors;
}

}  // namespace

CutGraph grouped(const CutGraph& graph, const std::vector<int>& group, int groups) {
  CutGraph result;
  result.nodes.resize(size_t(groups)), result.inputs.resize(size_t(groups)),
      result.consumers.resize(size_t(groups));
  for (auto* values :
       {&result.work_ns, &result.param_bytes, &result.held_bytes, &result.kept_bytes, &result.slot_bytes})
    values->assign(size_t(groups), 0);
  result.outputs.resize(size_t(groups));
  for (int v = 0; v < graph.size(); ++v) {
    const int g = group[v];
    result.nodes[g].insert(result.nodes[g].end(), graph.nodes[v].begin(), graph.nodes[v].end());
    result.work_ns[g] += graph.work_ns[v];
    result.param_bytes[g] += graph.param_bytes[v];
    result.held_bytes[g] += graph.held_bytes[v];
    result.kept_bytes[g] += graph.kept_bytes[v];
    result.slot_bytes[g] += graph.slot_bytes[v];
    for (const int after : graph.consumers[v])
      if (group[after] != g)
        result.consumers[g].push_back(group[after]), result.inputs[group[after]].push_back(g);
    for (const CutGraph::Output& output : graph.outputs[v]) add_output(result, group, g, output);
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

CutGraph graph_to_cut(const Profile& profile, const PlanOptions& options) {
  CutGraph graph = cut_graph(profile);
  if (profile.together.empty() && options.together.empty()) return graph;
  std::vector<int> node_of(profile.nodes.size(), -1);
  for (int v = 0; v < graph.size(); ++v) node_of[size_t(graph.nodes[v][0])] = v;
  // A cycle through its nodes holds a set together, and a set of the options leads to the next one.
  const auto lead = [&](int from, int to) { graph.consumers[size_t(from)].push_back(to); };
  const auto hold = [&](const std::vector<int>& set) {
    std::vector<int> nodes;
    for (const int n : set)
      if (node_of[size_t(n)] >= 0) nodes.push_back(node_of[size_t(n)]);
    for (size_t i = 0; i < nodes.size(); ++i) lead(nodes[i], nodes[(i + 1) % nodes.size()]);
    return nodes.empty() ? -1 : nodes[0];
  };
  for (const std::vector<int>& set : profile.together) hold(set);
  int before = -1;
  for (const std::vector<int>& set : options.together) {
    const int first = hold(set);
    if (before >= 0 && first >= 0) lead(before, first);
    if (first >= 0) before = first;
  }
  const Components components(graph.consumers);
  CutGraph result = grouped(graph, components.of, components.count);
  for (int g = 0; g < result.size(); ++g) {
    std::ranges::sort(result.nodes[g]);
    result.held_bytes[g] -= held_once_bytes(profile, result.nodes[g], true);
  }
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
