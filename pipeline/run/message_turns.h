// This function makes one rank's part of the order of all exchanges (message_order.h). It lists message by
// message what a transport that keeps an order (ordered_transport.h) is told; an all-reduce is listed as the
// messages that it is made of (replica_sum.h).
#pragma once

#include <functional>
#include <vector>

#include "pipeline/program/program.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// Returns the messages of a bucket's all-reduce on this rank, in groups: those of its first half if
// `scatters`, else of its second.
using SumTurns = std::function<std::vector<Turn>(int bucket, bool scatters)>;

// `order` is that of this rank, from issue_order.
std::vector<Turn> turns_of(const std::vector<int>& order, const RankProgram&, const SumTurns& of_sum);

// Returns this rank's turns in the order that the ranks find for the program. Collective. Throws Error when
// they find different orders.
std::vector<Turn> agreed_turns(const Program&, const Plan&, const Profile&, Job&, const SumTurns& of_sum);

}  // namespace antichain
