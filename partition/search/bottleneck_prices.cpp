// The search looks up these lists: the time and memory of the nodes before each state, for every kind of
// crew, and what each boundary takes to cross. Moves that cost and begin alike share a gate.
#include <algorithm>
#include <limits>
#include <numeric>

#include "framework/error.h"
#include "partition/search/bottleneck.h"

namespace antichain {
namespace {

template <class Price>
std::vector<int64_t> per_node(const CutGraph& graph, Price price) {
  std::vector<int64_t> prices;
  for (const std::vector<int>& members : graph.nodes) {
    int64_t sum = 0;
    for (int n : members) sum += price(n);
    prices.push_back(sum);
  }
  return prices;
}

std::vector<double> as_doubles(const std::vector<int64_t>& values) {
  if (!values.empty() && !(values.back() < int64_t(1) << 53))
    throw Error("the all-reduce of gradients takes longer than planning can add up",
                "check the link's bytes per second");
  return {values.begin(), values.end()};
}

}  // namespace

// This is f of a move's crew. Crews of one profile and speed differ only by the all-reduce, and by nothing on
// a free link.
int BottleneckSearch::price_list(const Profile& profile, const PlanOptions& options, const Move& move) {
  const Link& link = move.reduces_between_nodes ? options.cluster.between_nodes : options.cluster.within_node;
  const bool reduces = move.replicas > 1 && link.bytes_per_s > 0;
  const auto [place, fresh] = price_index_.try_emplace(
      {move.profile, move.speed, reduces ? 2 * int64_t(move.replicas) + move.reduces_between_nodes : 0},
      int(prices_.size()));
  if (fresh) {
    const Profile& times = options.cluster.profile(move.profile, profile);
    prices_.push_back(as_doubles(dag_.sums(per_node(dag_.graph(), [&](int n) {
      const NodeCost& cost = profile.nodes[n].cost;
      const int64_t shared = reduces ? gradient_ns(cost.param_bytes, link, options.microbatches) : 0;
      return stage_ns_of_all(work_ns(times, n, move.speed), shared, move.replicas);
    }))));
  }
  return place->second;
}

// The memory is that of all the devices of a move's crew together.
int BottleneckSearch::memory_list(const PlanOptions& options, const Move& move) {
  const auto [place, fresh] = memory_index_.try_emplace({move.in_flight, move.replicas}, int(memory_.size()));
  if (fresh) {
    const CutGraph& graph = dag_.graph();
    std::vector<int64_t> bytes;
    for (int v = 0; v < graph.size(); ++v)
      bytes.push_back(memory_bytes_of_all({.param_bytes = graph.param_bytes[v],
                                           .held_bytes = graph.held_bytes[v],
                                           .kept_bytes = graph.kept_bytes[v],
                                           .slot_bytes = graph.slot_bytes[v]},
                                          move.in_flight, move.replicas, options.shard_optimiser));
    memory_.push_back(as_doubles(dag_.sums(bytes)));
  }
  return place->second;
}

void BottleneckSearch::make_gates(const Profile& profile, const PlanOptions& options) {
  std::vector<Gate> asked;
  bool whole = !transfers_count_ && goal_ != Goal::memory;
  for (const Move& move : placements_.moves()) {
    Gate gate = {.from = move.from,
                 .crew = placements_.capacity(move.to) - placements_.capacity(move.from),
                 .between_nodes = transfers_count_ && move.arrives_between_nodes};
    if (goal_ != Goal::time) gate.memory = memory_list(options, move);
    if (goal_ != Goal::memory) gate.price = price_list(profile, options, move);
    terms_.push_back({.divisor = move.replicas,
                      .memory_limit = move.memory_bytes > 0 ? double(move.memory_bytes) * move.replicas
                                                            : std::numeric_limits<double>::infinity()});
    asked.push_back(gate);
    equal_speeds_ &= move.speed == 1;
    own_times_ &= move.profile < 0;
    whole &= move.speed == 1 && move.replicas == 1 && move.profile < 0;
  }
  gates_ = asked;
  std::sort(gates_.begin(), gates_.end());
  gates_.erase(std::unique(gates_.begin(), gates_.end()), gates_.end());
  for (const Gate& gate : gates_)
    gate_prices_.push_back({(goal_ == Goal::memory ? memory_[gate.memory] : prices_[gate.price]).data(),
                            transfers_count_ ? transfer_ns_[gate.between_nodes].data() : nullptr});
  for (size_t i = 0; i < asked.size(); ++i) {
    terms_[i].gate = int(std::lower_bound(gates_.begin(), gates_.end(), asked[i]) - gates_.begin());
    terms_[i].f = gate_prices_[terms_[i].gate].f;
  }
  gates_begin_.assign(size_t(placements_.size()) + 1, 0);
  for (const Gate& gate : gates_) ++gates_begin_[gate.from + 1];
  std::partial_sum(gates_begin_.begin(), gates_begin_.end(), gates_begin_.begin());
  // Profiles are often in whole microseconds. Then every threshold that matters is in whole microseconds,
  // too.
  if (whole) {
    unit_ = 0;
    for (int64_t ns : dag_.graph().work_ns) unit_ = std::gcd(unit_, ns);
    unit_ = std::max<int64_t>(1, unit_);
  }
}

void BottleneckSearch::price_boundaries(const PlanOptions& options) {
  for (const Link* link : {&options.cluster.within_node, &options.cluster.between_nodes}) {
    Prices ns(size_t(dag_.states()));
    for (int state = 0; state < dag_.states(); ++state)
      ns[state] = double(transfer_ns(dag_.crossing_bytes(state), dag_.crossing_tensors(state), *link));
    transfer_ns_.push_back(std::move(ns));
  }
}

int64_t BottleneckSearch::most() const {
  double most = 0;
  for (const Prices& f : goal_ == Goal::memory ? memory_ : prices_) most = std::max(most, f.back());
  for (const Prices& ns : transfer_ns_) most = std::max(most, *std::max_element(ns.begin(), ns.end()));
  return int64_t(most);
}

}  // namespace antichain
