// HostTimes are the times of a network's nodes in host memory, where a node takes as long as its call. They
// are measured for micro-batches of two kinds.
//
//   whole    a backward is one action
//   parted   its input half and its weight half are two actions, as in schedules that part them
#pragma once

#include <map>
#include <utility>

#include "partition/profile/profile.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct HostTimes {
  std::map<std::pair<NodeId, Verb>, double> node_s;  // medians over the steps

  double operator()(NodeId, Verb) const;  // 0 where the node was not called for that
};

// Sets the times of the nodes.
void price(Profile&, const HostTimes& whole, const HostTimes& parted);

}  // namespace antichain
