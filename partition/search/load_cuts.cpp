#include "partition/search/load_cuts.h"

#include <map>
#include <numeric>

#include "partition/plan/stage_cost.h"
#include "partition/search/contract.h"

namespace antichain {
namespace {

struct GraphTensor {
  std::vector<int> nodes;  // of the cut graph, ascending, two at least
  int64_t ns = 0;
};

// Returns what may have to be sent. Tensors of the same nodes are one.
std::vector<GraphTensor> tensors_of(const CutGraph& graph, const Profile& profile, const Link& link) {
  std::vector<int> node_of(profile.nodes.size(), -1);
  for (int v = 0; v < graph.size(); ++v)
    for (int n : graph.nodes[v]) node_of[size_t(n)] = v;
  std::map<std::vector<int>, int64_t> ns;
  for (const SentTensor& tensor : profile.sent_tensors()) {
    std::vector<int> nodes;
    for (int n : tensor.nodes) nodes.push_back(node_of[size_t(n)]);
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    if (nodes.size() > 1) ns[nodes] += sent_ns(tensor.bytes, link);
  }
  std::vector<GraphTensor> tensors;
  for (auto& [nodes, its_ns] : ns)
    if (its_ns > 0) tensors.push_back({nodes, its_ns});
  return tensors;
}

std::vector<int64_t> by_node(const CutGraph& graph, const Profile& times, double speed) {
  std::vector<int64_t> ns;
  for (const std::vector<int>& members : graph.nodes) {
    ns.push_back(0);
    for (int n : members) ns.back() += work_ns(times, n, speed);
  }
  return ns;
}

}  // namespace

CutGraph without_idle_ends(const CutGraph& graph, const Profile& profile, const PlanOptions& options) {
  std::vector<int64_t> work = graph.work_ns, bytes(size_t(graph.size()));
  for (const KindProfile& kind : options.cluster.profiles) {
    const std::vector<int64_t> there = by_node(graph, *kind.profile, 1);
    for (size_t v = 0; v < work.size(); ++v) work[v] += there[v];
  }
  for (int v = 0; v < graph.size(); ++v)
    bytes[size_t(v)] = graph.held_bytes[v] + options.microbatches * graph.kept_bytes[v];
  int64_t smallest = forbidden_cost;
  for (const Device& device : options.cluster.devices)
    if (device.memory_bytes > 0) smallest = std::min(smallest, device.memory_bytes);
  const bool everything_fits = std::accumulate(bytes.begin(), bytes.end(), int64_t(0)) <= smallest;
  // A node stays apart if its only neighbour lacks one of its tensors.
  std::vector<int> neighbour(size_t(graph.size()), -1);
  for (int v = 0; v < graph.size(); ++v) {
    const std::vector<int>&inputs = graph.inputs[v], &consumers = graph.consumers[v];
    if (work[size_t(v)] == 0 && (everything_fits || bytes[size_t(v)] == 0) &&
        inputs.size() + consumers.size() == 1)
      neighbour[size_t(v)] = inputs.empty() ? consumers[0] : inputs[0];
  }
  for (const GraphTensor& tensor : tensors_of(graph, profile, options.cluster.within_node))
    for (int v : tensor.nodes)
      if (!std::ranges::binary_search(tensor.nodes, neighbour[size_t(v)])) neighbour[size_t(v)] = -1;
  std::vector<int> group(size_t(graph.size()), -1);
  int groups = 0;
  for (int v = 0; v < graph.size(); ++v)
    if (neighbour[size_t(v)] < 0) group[size_t(v)] = groups++;
  for (int v = 0; v < graph.size(); ++v)
    if (group[size_t(v)] < 0) {
      const int with = group[size_t(neighbour[size_t(v)])];
      if (with < 0) return graph;  // two idle nodes are the whole of it
      group[size_t(v)] = with;
    }
  return groups < graph.size() ? grouped(graph, group, groups) : graph;
}

LoadCuts::LoadCuts(const AntichainDag& dag, const PlacementDag& placements, const Profile& profile,
                   const PlanOptions& options, bool fewer)
    : dag_(dag), placements_(placements), objective_(options.objective), fewer_(fewer) {
  find_kinds(profile, options);
  find_crossings(profile, options);
}

// This also counts the devices of each kind that a placement has used.
void LoadCuts::find_kinds(const Profile& profile, const PlanOptions& options) {
  const CutGraph& graph = dag_.graph();
  for (const Move& move : placements_.moves()) {
    const size_t kind = size_t(move.crew[0].first), in_flight = size_t(move.in_flight);
    kinds_.resize(std::max(kinds_.size(), kind + 1));
    kinds_[kind] = {.times = &options.cluster.profile(move.profile, profile),
                    .speed = move.speed,
                    .host = move.host,
                    .own = move.profile < 0 && move.speed == 1 && !move.host,
                    .memory_bytes = move.memory_bytes};
    bytes_.resize(std::max(bytes_.size(), in_flight + 1));
    if (!bytes_[in_flight].empty()) continue;
    std::vector<int64_t> bytes;
    for (int v = 0; v < graph.size(); ++v)
      bytes.push_back(graph.held_bytes[v] + move.in_flight * graph.kept_bytes[v]);
    bytes_[in_flight] = dag_.sums(bytes);
  }
  for (Kind& kind : kinds_)
    if (kind.times) kind.work_ns = dag_.sums(by_node(graph, *kind.times, kind.speed));
  used_.assign(size_t(placements_.size()), std::vector<int>(kinds_.size(), 0));
  for (const Move& move : placements_.moves()) {
    std::vector<int>& used = used_[size_t(move.to)];
    used = used_[size_t(move.from)];
    Kind& kind = kinds_[size_t(move.crew[0].first)];
    kind.most = std::max(kind.most, ++used[size_t(move.crew[0].first)]);
  }
}

void LoadCuts::find_crossings(const Profile& profile, const PlanOptions& options) {
  const std::vector<GraphTensor> tensors = tensors_of(dag_.graph(), profile, options.cluster.within_node);
  std::vector<std::vector<int>> of_node(size_t(dag_.graph().size()));
  std::vector<int> size;
  for (const GraphTensor& tensor : tensors) {
    for (int v : tensor.nodes) of_node[size_t(v)].push_back(int(tensor_ns_.size()));
    tensor_ns_.push_back(tensor.ns);
    size.push_back(int(tensor.nodes.size()));
  }
  crossings_begin_ = {0, 0};
  crossing_ns_ = {0};
  for (int state = 1; state < dag_.states(); ++state) {
    const size_t before = size_t(dag_.before(state));
    const std::vector<int>& own = of_node[size_t(dag_.added(state))];  // ascending
    auto next = own.begin();
    int64_t ns = 0;
    const auto add = [&](Crossing crossing) {
      if (crossing.inside == size[size_t(crossing.tensor)]) return;
      crossings_.push_back(crossing);
      ns += tensor_ns_[size_t(crossing.tensor)];
    };
    for (int64_t i = crossings_begin_[before]; i < crossings_begin_[before + 1]; ++i) {
      Crossing crossing = crossings_[size_t(i)];
      while (next != own.end() && *next < crossing.tensor) add({*next++, 1});
      if (next != own.end() && *next == crossing.tensor) ++next, ++crossing.inside;
      add(crossing);
    }
    while (next != own.end()) add({*next++, 1});
    crossings_begin_.push_back(int64_t(crossings_.size()));
    crossing_ns_.push_back(ns);
  }
}

int64_t LoadCuts::sent_ns(int from, int to) const {
  const Crossing *a = crossings_.data() + crossings_begin_[size_t(from)],
                 *a_end = crossings_.data() + crossings_begin_[size_t(from) + 1],
                 *b = crossings_.data() + crossings_begin_[size_t(to)],
                 *b_end = crossings_.data() + crossings_begin_[size_t(to) + 1];
  int64_t ns = crossing_ns_[size_t(from)] + crossing_ns_[size_t(to)];
  while (a != a_end && b != b_end) {
    if (a->tensor == b->tensor) ns -= tensor_ns_[size_t(a->tensor)] * (a->inside == b->inside ? 2 : 1);
    const int at = a->tensor;
    if (a->tensor <= b->tensor) ++a;
    if (b->tensor <= at) ++b;
  }
  return ns;
}

int64_t LoadCuts::load_ns(int from, int to, const Move& move) const {
  const Kind& kind = kind_of(move);
  const int64_t work = kind.work_ns[size_t(to)] - kind.work_ns[size_t(from)];
  return kind.host ? work : antichain::load_ns(objective_, work, sent_ns(from, to));
}

// Returns how much work, in the network's own times, a device of the kind can do within the limit: what it is
// best at, and a part of a node at the end.
double LoadCuts::work_within(const Kind& kind, int64_t limit_ns) const {
  const CutGraph& graph = dag_.graph();
  const std::vector<int64_t> there = by_node(graph, *kind.times, kind.speed), &own = graph.work_ns;
  std::vector<int> order(there.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int a, int b) {
    return double(own[size_t(a)]) * double(there[size_t(b)]) >
           double(own[size_t(b)]) * double(there[size_t(a)]);
  });
  double left = double(limit_ns), work = 1;
  for (int v : order) {
    const double its = double(there[size_t(v)]), part = its <= left ? 1 : left / its;
    work += part * double(own[size_t(v)]), left -= part * its;
    if (part < 1) break;
  }
  return work * (1 + 1e-12);
}

// A state is part of a path only if those that are used can have done what is before it, and the others can
// do the rest. Whatever the cuts, what crosses it is sent on both sides of it.
std::optional<FoundCuts> LoadCuts::least(int64_t floor, int64_t below) const {
  std::vector<double> work_of;
  for (const Kind& kind : kinds_) work_of.push_back(kind.times ? work_within(kind, below - 1) : 0);
  struct Side {
    double work = 0, loads = 0;  // that these devices can do; loads: with what they send, infinite if unknown
  };
  const auto side = [&](const auto& count) {
    Side can;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      can.work += count(k) * work_of[k];
      can.loads += count(k) == 0 ? 0 : kinds_[k].own ? count(k) * double(below - 1) : 1e300;
    }
    return can;
  };
  std::vector<Side> before, after;
  for (const std::vector<int>& used : used_) {
    before.push_back(side([&](size_t k) { return used[k]; }));
    after.push_back(side([&](size_t k) { return kinds_[k].most - used[k]; }));
  }
  const double all = double(dag_.work_ns(dag_.full()));
  const auto enough = [&](const Side& can, double work, double sent) {
    return work <= can.work && (objective_ == Objective::load ? work + sent : sent) <= can.loads;
  };
  const auto may_end = [&](int placement, int state) {
    const double work = double(dag_.work_ns(state)), sent = double(crossing_ns_[size_t(state)]);
    return enough(before[size_t(placement)], work, sent) &&
           enough(after[size_t(placement)], all - work, sent);
  };
  const auto at_least = [&](int from, int to, const Move& move) {
    const Kind& kind = kind_of(move);
    const std::vector<int64_t>& bytes = bytes_[size_t(move.in_flight)];
    if (kind.memory_bytes > 0 && bytes[size_t(to)] - bytes[size_t(from)] > kind.memory_bytes)
      return forbidden_cost;
    return kind.work_ns[size_t(to)] - kind.work_ns[size_t(from)];
  };
  const auto cost = [&](int from, int to, const Move& move) { return load_ns(from, to, move); };
  std::vector<int> states(size_t(dag_.states()));
  std::iota(states.begin(), states.end(), 0);
  return least_path(dag_, placements_, states, floor, below, fewer_, may_end, at_least, cost);
}

}  // namespace antichain
