#include "partition/cut_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/error.h"

namespace antichain {
namespace {

// 2^53 ns: what a double holds exactly, so that a bottleneck in seconds names one integer.
constexpr double max_total_ns = 9007199254740992.0;

class Rounding {
 public:
  int64_t ns(double seconds, const std::string& name) {
    double ns = seconds * 1e9;
    total_ += ns;
    if (!(ns >= 0 && total_ < max_total_ns))
      throw Error("node " + name + " takes " + std::to_string(seconds) + " s, which no plan can add up",
                  "check its times and the link in the profile");
    return std::llround(ns);
  }

 private:
  double total_ = 0;
};

std::vector<std::vector<int>> consumers_of(const std::vector<std::vector<int>>& inputs) {
  std::vector<std::vector<int>> consumers(inputs.size());
  for (size_t v = 0; v < inputs.size(); ++v)
    for (int u : inputs[v]) consumers[u].push_back(int(v));
  return consumers;
}

}  // namespace

int64_t CutGraph::total_work_ns() const {
  return std::accumulate(work_ns.begin(), work_ns.end(), int64_t(0));
}

int64_t CutGraph::lower_bound_ns(int stages) const {
  int64_t share = (total_work_ns() + stages - 1) / stages;
  return work_ns.empty() ? share : std::max(share, *std::max_element(work_ns.begin(), work_ns.end()));
}

CutGraph cut_graph(const Profile& profile, const Link& link) {
  CutGraph graph;
  std::vector<int> index(profile.nodes.size(), -1);
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    if (profile.nodes[n].role == Role::input) continue;
    std::vector<int> inputs;
    for (int u : profile.nodes[n].inputs)
      if (index[u] >= 0) inputs.push_back(index[u]);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    index[n] = graph.size();
    graph.node.push_back(int(n));
    graph.inputs.push_back(std::move(inputs));
  }
  graph.consumers = consumers_of(graph.inputs);

  Rounding work, transfer;
  for (int v = 0; v < graph.size(); ++v) {
    const ProfileNode& node = profile.nodes[graph.node[v]];
    bool crosses = !graph.consumers[v].empty();
    graph.work_ns.push_back(work.ns(node.cost.compute_s(), node.name));
    graph.output_bytes.push_back(crosses ? node.cost.output_bytes : 0);
    graph.transfer_ns.push_back(crosses ? transfer.ns(2 * link.seconds(node.cost.output_bytes), node.name)
                                        : 0);
  }
  return graph;
}

}  // namespace antichain
