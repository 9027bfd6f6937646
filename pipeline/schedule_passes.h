// The passes that make_schedule composes, and what a cut asks to be sent: shared with the validator.
#pragma once

#include <vector>

#include "pipeline/schedule.h"

namespace antichain {

// Pass 1: the forwards and backwards of one stage of S, in the policy's order.
std::vector<Action> compute_order(Policy, int stages, int stage, int microbatches);

// One tensor or gradient that crosses the cut, once every micro-batch.
struct Route {
  Message message;
  int from_stage = 0, to_stage = 0;
  auto operator<=>(const Route&) const = default;
};

// What a plan's cut needs besides computing.
struct Cut {
  std::vector<Route> activations;  // by tensor, then receiving stage, ascending
  std::vector<Route> gradients;    // by tensor descending, then in the order of the fold
  std::vector<bool> loads;         // per stage: whether it uses an input node
  std::vector<int> rank_of;        // per stage
};
// Error when the plan does not fit the network or a stage has replicas.
Cut cut_of(const Profile& network, const Plan&);

// Pass 2: puts loads and recvs right before the compute action that needs them, sends right after the one that
// produces the tensor.
std::vector<Action> add_messages(const std::vector<Action>& compute, const Cut&);

// Pass 3: one step at the end, when there is anything to learn from.
std::vector<Action> add_updates(std::vector<Action>, int stage);

}  // namespace antichain
