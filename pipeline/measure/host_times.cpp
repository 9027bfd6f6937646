#include "pipeline/measure/host_times.h"

#include <algorithm>

namespace antichain {
namespace {

// Returns the node's cost. What its halves take longer apart is below 0 where noise says so.
//
// A whole backward often takes less than its halves, because one call reads the operands once, or finds them
// in a cache.
NodeCost priced(NodeCost cost, NodeId id, const HostTimes& whole, const HostTimes& parted) {
  cost.forward_s = whole(id, Verb::forward);
  cost.update_s = whole(id, Verb::update);
  const double both_s = whole(id, Verb::backward), late_s = parted(id, Verb::backward_weight);
  if (both_s > 0) {
    const double input_s = parted(id, Verb::backward_input);
    cost.backward_input_s = std::min(input_s, both_s);
    cost.backward_weight_s = both_s - cost.backward_input_s;
    cost.backward_parted_s = input_s + late_s - both_s;
  } else {
    cost.backward_input_s = whole(id, Verb::backward_input);
    cost.backward_weight_s = whole(id, Verb::backward_weight);
    cost.backward_parted_s = late_s - cost.backward_weight_s;
  }
  return cost;
}

// Raises the nodes below 0 to 0 and lowers the others, so that the sum of what halves take longer apart
// stays. If each node were cut at 0 by itself, noise would add to the sum.
void settle_parted(std::vector<ProfileNode>& nodes) {
  double sum = 0, positive = 0;
  for (const ProfileNode& node : nodes) {
    sum += node.cost.backward_parted_s;
    positive += std::max(0.0, node.cost.backward_parted_s);
  }
  const double share = positive > 0 ? std::max(0.0, sum) / positive : 0;
  for (ProfileNode& node : nodes)
    node.cost.backward_parted_s = share * std::max(0.0, node.cost.backward_parted_s);
}

}  // namespace

double HostTimes::operator()(NodeId id, Verb verb) const {
  const auto found = node_s.find({id, verb});
  return found == node_s.end() ? 0 : found->second;
}

void price(Profile& profile, const HostTimes& whole, const HostTimes& parted) {
  for (size_t id = 0; id < profile.nodes.size(); ++id)
    profile.nodes[id].cost = priced(profile.nodes[id].cost, NodeId(id), whole, parted);
  settle_parted(profile.nodes);
}

}  // namespace antichain
