// One rank's part of the order of all exchanges (message_order.h), as a transport that keeps one
// (ordered_transport.h) is told it: message by message, where an all-reduce is those that it is made of
// (replica_sum.h).
#pragma once

#include <span>
#include <vector>

#include "pipeline/schedule/channels.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// `order`: of this rank, from issue_order. `own`: its actions. `of_sum`: an all-reduce's messages here, in
// groups; empty where the stage has one replica.
std::vector<Turn> turns_of(const std::vector<int>& order, const std::vector<Action>& own, const Channels&,
                           int rank, std::span<const Turn> of_sum);

}  // namespace antichain
