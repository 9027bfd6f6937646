#include "partition/search/topological_orders.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace antichain {
namespace {

// A. B. Kahn, "Topological sorting of large networks", Communications of the ACM, 1962: of the nodes whose
// inputs are done, the one of the smallest key always comes next. A key may use when a node became ready.
std::vector<int> sorted_by(const CutGraph& graph,
                           const std::function<int64_t(int node, int64_t ready)>& key) {
  std::vector<int> order, waiting;
  std::set<std::pair<int64_t, int>> ready;
  int64_t clock = 0;
  for (const std::vector<int>& inputs : graph.inputs) waiting.push_back(int(inputs.size()));
  for (int v = 0; v < graph.size(); ++v)
    if (waiting[v] == 0) ready.emplace(key(v, clock++), v);
  while (!ready.empty()) {
    const int node = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(node);
    for (int v : graph.consumers[node])
      if (--waiting[v] == 0) ready.emplace(key(v, clock++), v);
  }
  return order;
}

// Returns the longest path from a node to an end, in work.
std::vector<int64_t> tails(const CutGraph& graph) {
  std::vector<int64_t> tail(graph.work_ns);
  for (int v = graph.size() - 1; v >= 0; --v)
    for (int after : graph.consumers[v]) tail[v] = std::max(tail[v], graph.work_ns[v] + tail[after]);
  return tail;
}

}  // namespace

std::vector<std::vector<int>> topological_orders(const CutGraph& graph) {
  const std::vector<int64_t> tail = tails(graph);
  std::vector<int> graph_order(size_t(graph.size()));
  std::iota(graph_order.begin(), graph_order.end(), 0);
  std::vector<std::vector<int>> orders = {
      graph_order,
      sorted_by(graph, [](int, int64_t ready) { return ready; }),
      sorted_by(graph, [](int, int64_t ready) { return -ready; }),
      sorted_by(graph, [&](int v, int64_t) { return -tail[v]; }),
      sorted_by(graph, [&](int v, int64_t) { return tail[v]; }),
      sorted_by(graph, [&](int v, int64_t) { return -graph.work_ns[v]; }),
      sorted_by(graph, [&](int v, int64_t) { return graph.work_ns[v]; }),
  };
  std::vector<std::vector<int>> different;
  for (std::vector<int>& order : orders)
    if (std::find(different.begin(), different.end(), order) == different.end())
      different.push_back(std::move(order));
  return different;
}

}  // namespace antichain
