// This file counts the micro-batches that a rank has in flight of a stage, and lists the policies under which
// a stage may have several ranks.
#pragma once

#include <algorithm>
#include <vector>

#include "pipeline/schedule/policy.h"

namespace antichain::test {

// Returns the most micro-batches at once between the stage's forward and the end of its backward, or of its
// forward, where nothing is learned.
inline int most_in_flight(const Schedule& schedule, int rank, int stage) {
  const bool training = learns(schedule);
  int alive = 0, most = 0;
  for (const Action& a : schedule.ranks[size_t(rank)]) {
    if (a.stage != stage) continue;
    if (a.verb == Verb::forward) most = std::max(most, ++alive);
    alive -= training ? a.verb == Verb::backward || a.verb == Verb::backward_weight : a.verb == Verb::forward;
  }
  return most;
}

inline std::vector<Policy> policies_with_replicas() {
  std::vector<Policy> found;
  for (const Policy& policy : policies())
    if (policy.replicas) found.push_back(policy);
  return found;
}

}  // namespace antichain::test
