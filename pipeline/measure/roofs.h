// Roofs are what bounds every operator's speed: how fast a rank multiplies and how fast it reads and writes
// memory. Williams, Waterman & Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
// Architectures", CACM 2009.
#pragma once

#include "framework/graph.h"
#include "partition/profile/profile.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// A NodeWork is what a node's kernels do in one micro-batch, or its update in one step. The bytes are those
// that must be read and written at least: each operand once.
struct NodeWork {
  double flops = 0;
  int64_t bytes = 0;

  NodeWork operator+(const NodeWork& w) const { return {flops + w.flops, bytes + w.bytes}; }
  NodeWork operator*(int times) const { return {flops * times, bytes * times}; }
};
// A forward reads inputs and weights, and writes output and stash. What looks rows up, without multiplying,
// reads and changes no more weights than it has outputs.
NodeWork forward_work(const Graph& lowered, NodeId);
// A backward reads the output's gradient, the weights and what was kept of the forward. It writes the inputs'
// gradients and adds to those of weights; in a step of one micro-batch it only writes them. It has the
// forward's FLOPs for the inputs' gradients and once more for the weights', or twice where it has no weights.
NodeWork backward_work(const Graph& lowered, NodeId, int microbatches);
// An update reads weights, gradients and slots, and writes weights, slots and the engine's copies of weights.
// Its FLOPs are unknown and count as 0. A weight that several nodes have is updated by the first.
NodeWork update_work(const Profile&, int node);

struct Roofs {
  double flops_per_s = 0, bytes_per_s = 0;
  int64_t array_bytes = 0;  // of each of the two arrays whose sum took the time
  // Returns whether that work takes longer at the one roof than at the other.
  bool computing_binds(const NodeWork& w) const {
    return w.flops * bytes_per_s > double(w.bytes) * flops_per_s;
  }
};
// Throws Error where the device has memory of its own.
void check_roofs(const Backend&);
// Collective. All ranks measure at once, each by its threads, and rank 0's figures count. `product` is a
// lowered network: its pass of the most FLOPs a second gives the one roof, and the engine's sum of two
// arrays, which no cache holds, the other. Each is the best of several turns, because other programs may
// disturb some.
Roofs measure_roofs(const Graph& product, Context&, Transport&);

}  // namespace antichain
