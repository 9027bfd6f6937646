#include "partition/search/cut_graph.h"

#include <algorithm>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

// Up to 2^53 a double holds whole numbers exactly, and a bottleneck in seconds names one integer of
// nanoseconds.
constexpr double max_total_ns = 0x1p53, max_total_bytes = 0x1p53;

constexpr double most_microbatches = 4096;

class Total {
 public:
  explicit Total(double most) : most_(most) {}
  bool holds(double more) {
    sum_ += more;
    return more >= 0 && sum_ < most_;
  }

 private:
  double most_, sum_ = 0;
};

void check_sums(const Profile& profile) {
  Total ns(max_total_ns), bytes(max_total_bytes);
  for (const ProfileNode& node : profile.nodes) {
    const NodeCost& cost = node.cost;
    if (!ns.holds(cost.compute_s() * 1e9))
      throw Error(
          "node " + node.name + " takes " + std::to_string(cost.compute_s()) + " s, which no plan can add up",
          "check its times in the profile");
    // Bytes are counted as often as a formula may count them: what is held once, and the rest for every
    // micro-batch of a step.
    if (!bytes.holds(trained_bytes(double(cost.param_bytes), double(cost.slot_bytes())) +
                     double(cost.frozen_bytes) + double(cost.prepared_bytes) +
                     most_microbatches * (double(cost.stash_bytes) + double(cost.output_bytes))))
      throw Error("node " + node.name + " has more bytes than a plan can add up",
                  "check them in the profile");
  }
}

std::vector<std::vector<int>> consumers_of(const std::vector<std::vector<int>>& inputs) {
  std::vector<std::vector<int>> consumers(inputs.size());
  for (size_t v = 0; v < inputs.size(); ++v)
    for (int u : inputs[v]) consumers[u].push_back(int(v));
  return consumers;
}

}  // namespace

CutGraph cut_graph(const Profile& profile) {
  check_sums(profile);
  CutGraph graph;
  std::vector<int> index(profile.nodes.size(), -1);
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    const ProfileNode& node = profile.nodes[n];
    if (node.role == Role::input) continue;
    std::vector<int> inputs;
    for (int u : node.inputs)
      if (index[u] >= 0) inputs.push_back(index[u]);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    index[n] = graph.size();
    graph.nodes.push_back({int(n)});
    graph.inputs.push_back(std::move(inputs));
    graph.work_ns.push_back(work_ns(node.cost, 1));
    graph.param_bytes.push_back(node.cost.param_bytes);
    graph.held_bytes.push_back(held_bytes(node.cost));
    graph.kept_bytes.push_back(kept_bytes(node.cost));
    graph.slot_bytes.push_back(slots_to_share_out(node));
  }
  graph.consumers = consumers_of(graph.inputs);
  for (int v = 0; v < graph.size(); ++v) {
    std::vector<CutGraph::Output>& outputs = graph.outputs.emplace_back();
    if (!graph.consumers[v].empty())
      outputs.push_back(
          {.bytes = profile.nodes[graph.nodes[v][0]].cost.output_bytes, .consumers = graph.consumers[v]});
  }
  return graph;
}

CutGraph reordered(const CutGraph& graph, const std::vector<int>& order) {
  CutGraph result;
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = int(i);
  const auto renumber = [&](std::vector<int>& nodes) {
    for (int& v : nodes) v = place[v];
    std::ranges::sort(nodes);
  };
  for (int v : order) {
    renumber(result.inputs.emplace_back(graph.inputs[v]));
    for (CutGraph::Output& output : result.outputs.emplace_back(graph.outputs[v])) renumber(output.consumers);
    result.nodes.push_back(graph.nodes[v]);
    for (const auto price : {&CutGraph::work_ns, &CutGraph::param_bytes, &CutGraph::held_bytes,
                             &CutGraph::kept_bytes, &CutGraph::slot_bytes})
      (result.*price).push_back((graph.*price)[v]);
  }
  result.consumers = consumers_of(result.inputs);
  return result;
}

}  // namespace antichain
