// HostTimes are the times of a network's nodes in host memory, where a node takes as long as its call. They
// are measured in steps of two kinds.
//
//   whole    a backward is one action
//   parted   all weight halves of a micro-batch come after all its input halves, as in schedules that part
//            them
#pragma once

#include <map>
#include <utility>

#include "partition/profile/profile.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct HostTimes {
  std::map<std::pair<NodeId, Verb>, double> node_s;  // medians over the steps

  double operator()(NodeId, Verb) const;  // 0 where the node was not called for that
  double sum_s(Verb) const;
};

// Sets the times of the nodes. Both kinds of steps have the same forwards, which say by how much the machine
// was faster or slower between the two measurements; the parted times are scaled by that.
void price(Profile&, const HostTimes& whole, const HostTimes& parted);

}  // namespace antichain
