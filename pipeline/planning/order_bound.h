// These bounds hold for every order of a plan's forwards and backwards that keeps limits of micro-batches in
// flight. A rank has at most L of M in flight.
//
// No step is shorter than any of these of a rank, whose first forward can't begin before `fill`:
//
//   load     fill + all its work + its update + `idle`: at the beginning it has L forwards to do, and then
//            waits for its first gradient
//   gradient fill + its forwards, input halves and the weight halves that the limit wants before the last
//            forward, + idle + the way of the last gradient to the first stage, with what follows there
//   trips    of L micro-batches in flight each begins when the one L before it has ended: ⌈M / L⌉ ways to
//            the loss and back, one after the other
//
// Where steps overlap, a rank begins the next step after its own update. So the period is no shorter than the
// span of any rank from its first forward to its update, which has the same bounds with `fill` and the way
// back counted from that rank. Nor is the period shorter than the time that any link needs for a step.
//
// Where ranks have several stages, only these hold: of each forward and backward of a rank, the earliest time
// at which its first can begin, with all work of the rank that can't begin before; the way of one micro-batch
// there and back, and the time that a link needs.
#pragma once

#include <vector>

#include "partition/plan/steps.h"
#include "pipeline/planning/order_estimate.h"

namespace antichain {

// Returns the bound in seconds, of the step or of the period. `in_flight` is by rank, numbered as in
// PipelineTimes.
double order_bound_s(const OrderEstimate&, const std::vector<int>& in_flight, Steps = Steps::apart);

}  // namespace antichain
