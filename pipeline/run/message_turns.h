// This function makes one rank's part of the order of all exchanges (message_order.h). It lists message by
// message what a transport that keeps an order (ordered_transport.h) is told; an all-reduce is listed as the
// messages that it is made of (replica_sum.h).
#pragma once

#include <span>
#include <vector>

#include "pipeline/schedule/channels.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// `order` is that of this rank, from issue_order, and `own` are its actions. `of_sum` are an all-reduce's
// messages here, in groups; it is empty where the stage has one replica.
std::vector<Turn> turns_of(const std::vector<int>& order, const std::vector<Action>& own, const Channels&,
                           int rank, std::span<const Turn> of_sum);

}  // namespace antichain
