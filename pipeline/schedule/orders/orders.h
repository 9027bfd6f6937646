// These are the orders of computing that the table in pipeline/schedule/policy.cpp gives names to.
//
// Backwards ascend in every order, because weight gradients accumulate in micro-batch order. In the comments
// p is the number of ranks, r a rank's position among them, m the number of micro-batches. F, I, W and B are
// a forward, an input half, a weight half and a whole backward. F0 is one of the rank's first stage, F1 one
// of its second.
#pragma once

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/compute_order.h"

namespace antichain::orders {

// These are for one stage a rank.
ComputeOrders one_f_one_b(const Seats&);
ComputeOrders zero_bubble_h1(const Seats&);
ComputeOrders zero_bubble_h2(const Seats&);
int zero_bubble_h1_in_flight(const PipelinePlace&);
int zero_bubble_h2_in_flight(const PipelinePlace&);

// These are for any stages.
ComputeOrders all_forwards_first(const Seats&);
ComputeOrders only_forwards(const Seats&);
int one_in_flight(const PipelinePlace&);

// Does `lead` forwards, then backwards and forwards in turn, with at most `lead` micro-batches in flight.
std::vector<Action> forwards_ahead(const Seat& seat, int lead);

// This is for policies that do not wait for an update before they begin what comes after it. A rank has one
// stage, or one rank has all of them.
ComputeOrders without_flush(const Seats&);
int one_update(int stage, int stages);
int stages_behind(int stage, int stages);
int one_a_rank(int microbatches, int ranks);  // at least
int one_microbatch(int microbatches, int ranks);

// This is for stages that go round the ranks. The number of micro-batches is a multiple of that of ranks.
ComputeOrders interleaved(const Seats&);
int whole_groups(int microbatches, int ranks);  // the next number that is

// These are for stages that go along the ranks and back.
ComputeOrders zero_bubble_v(const Seats&);
ComputeOrders v_half(const Seats&);
ComputeOrders v_min(const Seats&);
ComputeOrders dual_pipe_v(const Seats&);      // at least two micro-batches a rank
int two_a_rank(int microbatches, int ranks);  // the next number that is

}  // namespace antichain::orders
