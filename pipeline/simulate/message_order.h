// One order of all exchanges of a step, a message or an all-reduce each, for transports that have a single
// stream of messages per rank (NCCL): every rank issues its own in this order.
//
// An exchange is done when all its ranks have come to it, and blocks the stream of each until then. It needs
//
//   of a message      the sender's S, and on the receiver the action that frees the buffer: the backward (in
//                     evaluation: the forward) of the micro-batch that had the ring's slot before
//   of an all-reduce  every replica's A
//
// and each of these comes, on its rank, after all R and A before it in the list. Exchanges are sorted by
//
//   done_s   when it is done in simulation: delivered, and the buffer free
//   depth    how many exchanges have to come before it, one after the other
//   place    rank and index of its first action: ties by key
//
// Whatever an exchange needs is earlier in this order: time never runs backwards along a need, and depth
// grows. So the earliest exchange that is not done finds all its ranks at it, sooner or later, even if a rank
// stood still wherever it issues, and nobody waits for ever. By delivery alone, ties between messages that
// take no time, and receives whose buffer is still in use, would be in a wrong order.
// tests/pipeline/simulate/message_order_test.cpp carries orders out, right ones and wrong ones.
//
// With several lanes a rank (Transport::lane), each is a part of the order, so the same holds for it: the
// earliest exchange that is not done heads its lane on all its ranks. Whatever else makes an exchange wait
// for one before it in the order does no harm, be it a queue of the device that two lanes share; nor does one
// that waits for none, as a copy.
#pragma once

#include <functional>
#include <vector>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

struct Exchange {
  double done_s = 0;
  int depth = 0;  // at least 1
  // Of a message: its send, then its recv; of an all-reduce: every replica's, ranks ascending.
  std::vector<Place> places;
};

// Error when the schedule is not valid for the plan, or the plan names a device that the cluster lacks.
std::vector<Exchange> message_order(const Schedule&, const Plan&, const Profile&, const Cluster&);

// What each rank issues: indices into its list, in the given order.
std::vector<std::vector<int>> issue_order(const std::vector<Exchange>&, int ranks);

// [rank][index]: of a recv, the index in the same list of the action that frees the buffer it is posted with;
// −1 for all other actions, and where the buffer is free from the begin.
std::vector<std::vector<int>> freed_by(const Schedule&);

// As Transport::lane says it.
using LaneOf = std::function<int(int from, int to, Flow)>;
inline int one_lane(int, int, Flow) { return 0; }

// The simulator, with lanes: an exchange begins when all its ranks have come to it and done those before it
// in its lane, and its ranks do no other of that lane until it is over. Error when the order lets a rank wait
// for ever.
Timeline simulate_in_order(const Schedule&, const Plan&, const Profile&, const Cluster&,
                           const std::vector<Exchange>&, const LaneOf& = one_lane);

}  // namespace antichain
