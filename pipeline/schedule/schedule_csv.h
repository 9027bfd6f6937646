// This file writes and reads a schedule as the CSV of torch.distributed.pipelining, in its compute-only form:
// a line a rank, a cell an action. Messages and updates are left out, because they follow from the plan.
//
//   0F0,0F1,,7I0,7W0,(0F7;7B3)OVERLAP_F_B
//
//   cell      = stage letter micro-batch    F forward, B whole backward, I input half, W weight half
//             | "(" F ";" B ")OVERLAP_F_B"  a fused pair: the forward and then the backward of another stage
//             | nothing                     idle; not read as anything
//
// Source: PyTorch, torch/distributed/pipelining/schedules.py, 2025.
#pragma once

#include <string>

#include "pipeline/schedule/compute_order.h"

namespace antichain {

// A forward and the backward right after it are written as a fused pair where all messages that the backward
// waits for are received before the forward. Where it waits for none, they are one if the rank has other
// pairs.
std::string to_csv(const Schedule&);

struct CsvSchedule {
  int microbatches = 0;
  ComputeOrders orders;  // per rank
};
// Throws Error with origin, line and column for anything else than the cells above, and for micro-batches
// that do not ascend: forwards, input gradients and weight gradients of a stage on a rank each come in order.
CsvSchedule parse_csv(const std::string& text, const std::string& origin);

// Returns the schedule of these orders for a plan, validated. Throws Error when an order is not that of the
// plan's ranks.
Schedule make_schedule(const Profile& profile, const Plan&, const CsvSchedule&, const std::string& origin);

}  // namespace antichain
