// This planner balances memory: it finds the contiguous split, in graph order, whose fullest device is least
// full. The literature calls it cudasize_mp; here the split is optimal.
//
// A stage's memory is that of partition/plan/stage_cost.h: weights with all that goes with them, and what its
// forwards keep for backward, times the micro-batches in flight there. Early stages have more of these in
// flight, so they get fewer nodes. A device's share is counted against its own memory. Times play no part.
#include <algorithm>
#include <chrono>

#include "partition/planners/balanced_sequence.h"
#include "partition/planners/sequence.h"

namespace antichain {
namespace {

__extension__ typedef __int128 Wide;

// A Fullness is an exact fraction.
struct Fullness {
  int64_t bytes = 0, capacity = 1;
  bool operator<(const Fullness& other) const {
    return Wide(bytes) * other.capacity < Wide(other.bytes) * capacity;
  }
};

// Unlimited devices count as the largest limited one; where none is limited, all count alike.
std::vector<int64_t> capacities(const Cluster& cluster, int stages) {
  int64_t largest = 1;
  for (int s = 0; s < stages; ++s) largest = std::max(largest, cluster.device(s).memory_bytes);
  std::vector<int64_t> capacities;
  for (int s = 0; s < stages; ++s)
    capacities.push_back(cluster.device(s).memory_bytes > 0 ? cluster.device(s).memory_bytes : largest);
  return capacities;
}

}  // namespace

Plan plan_cudasize(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const CutGraph graph = sequence_graph(profile, options, Method::cudasize);
  const int parts = sequence_parts(options, graph);
  const std::vector<int64_t> held = running_sums(graph.held_bytes), kept = running_sums(graph.kept_bytes);
  const std::vector<int64_t> capacity = capacities(options.cluster, parts);
  std::vector<int> micro_batches;
  for (int s = 0; s < parts; ++s)
    micro_batches.push_back(options.in_flight({options.microbatches, parts, parts - s, 1}));
  auto fullness = [&](int s, int begin, int end) {
    const MemoryParts bytes{.held = held[end] - held[begin], .kept = kept[end] - kept[begin]};
    return Fullness{memory_bytes(bytes, micro_batches[s], 1), capacity[s]};
  };
  return sequence_plan(profile, options, balanced_sequence(graph.size(), parts, fullness), Method::cudasize,
                       start);
}

}  // namespace antichain
