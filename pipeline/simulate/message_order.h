// This file puts all exchanges of a step (a message or an all-reduce each) into one order. Transports with a
// single stream of messages per rank (NCCL) need it: every rank issues its own exchanges in this order.
//
// An exchange is done when all its ranks have reached it, and blocks the stream of each until then. It needs
//
//   of a message      the sender's S, and on the receiver the action that frees the buffer
//                     (Instruction::freed_by in pipeline/program/program.h)
//   of an all-reduce  two exchanges, a half of the time each: the replicas first send each other the terms
//                     (reduce-scatter), once the last backward of each has passed the bucket's nodes, and
//                     then the sums (all-gather), once each has come to its A
//
// and each of these comes, on its rank, after all R and A before it in the list. Exchanges are sorted by
//
//   done_s   when it is done in simulation: delivered, and the buffer free
//   depth    how many exchanges have to come before it, one after the other
//   place    rank and index of its first action: ties by key
//
// Everything that an exchange needs is earlier in this order: time never runs backwards along a need, and
// depth grows. So all ranks reach the earliest unfinished exchange sooner or later, even if a rank stops
// wherever it issues, and no rank waits forever. Sorting by delivery alone would go wrong for ties between
// messages that take no time, and for receives whose buffer is still in use.
// tests/pipeline/simulate/message_order_test.cpp executes orders, right ones and wrong ones.
//
// With several lanes per rank (Transport::lane), each lane is a part of the order, so the same holds: the
// earliest unfinished exchange heads its lane on all its ranks. It does no harm when an exchange also waits
// for an earlier one, for example because two lanes share a device queue. Work that waits for no exchange,
// such as a copy, does no harm either.
#pragma once

#include <functional>
#include <vector>

#include "pipeline/program/program.h"
#include "pipeline/schedule/happens_before.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

struct Exchange {
  double done_s = 0;
  int depth = 0;  // at least 1
  // A message has its send, then its recv. Both halves of an all-reduce have every replica's A, ranks
  // ascending.
  std::vector<ActionPlace> places;
  bool scatters = false;  // the first half of an all-reduce
};

// Throws Error when the schedule is not valid for the plan, or the plan names a device that the cluster
// lacks.
std::vector<Exchange> message_order(const Program&, const Plan&, const Profile&, const Cluster&);

// Returns what each rank issues, as indices into its list, in the given order. An A is there twice, once for
// each half.
std::vector<std::vector<int>> issue_order(const std::vector<Exchange>&, int ranks);

// Returns the lane, as Transport::lane does.
using LaneOf = std::function<int(int from, int to, Flow)>;
inline int one_lane(int, int, Flow) { return 0; }

// Simulates with lanes: an exchange begins when all its ranks have reached it and have done those before it
// in its lane. Its ranks do no other exchange of that lane until it is over. Throws Error when the order
// makes a rank wait forever.
Timeline simulate_in_order(const Program&, const Plan&, const Profile&, const Cluster&,
                           const std::vector<Exchange>&, const LaneOf& = one_lane, Steps = Steps::apart);

}  // namespace antichain
