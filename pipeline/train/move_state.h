// Between two steps a run can go over from one plan to another. Nodes that stay on their rank stay as they
// are. The state of those that change it goes from the rank before to the rank after: parameters, what the
// optimiser keeps beside them, averages and buffers, bit for bit.
#pragma once

#include <cstdint>
#include <string>

#include "partition/plan/plan.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// Returns why state can't go from one plan to the other, as a sentence's end ("stage 1 has 2 replicas"), or
// "". Both plans are for the same ranks.
std::string why_not_moved(const Plan& from, const Plan& to);

// Moved counts what changes its rank.
struct Moved {
  int nodes = 0;
  int64_t bytes = 0;  // of their parameters, slots and buffers
};
Moved count_moved(const Graph&, const Optimiser&, const Plan& from, const Plan& to);

// Collective, between two steps, where nothing is under way. The model of each rank has its nodes of `from`,
// and then those of `to`. Runners of the model have to be made again.
void move_state(RankModel&, const Plan& from, const Plan& to, Transport&);

}  // namespace antichain
