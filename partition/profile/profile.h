// A Profile is the network as the planner, the scheduler and the simulator see it: a directed acyclic graph
// whose nodes have costs. It is a file (profile.json) that one can read, diff, edit and pass back in.
//
// Static costs (bytes, FLOPs) come from the graph. Times are measured on the hardware, under the load of the
// run: `ranks_at_once` is how many ranks of one host ran the same kernels at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"
#include "framework/optimiser.h"

namespace antichain {

// Times are seconds for one micro-batch. Output and stash are bytes for one micro-batch; param and buffer are
// bytes in all.
struct NodeCost {
  // A whole backward takes the sum of its halves. An op that can't separate its backward has all of that time
  // in backward_input_s.
  double forward_s = 0, backward_input_s = 0, backward_weight_s = 0;
  // This is how much longer the weight half takes as an action of its own, because what the input half has
  // read is no longer in a cache.
  double backward_parted_s = 0;
  double update_s = 0;  // the optimiser's pass over the parameters, once per step
  int64_t output_bytes = 0;
  int64_t param_bytes = 0;  // one copy of the weights that are trained
  // What the optimiser keeps beside the weights from step to step. Where a profile does not say it, that is
  // one more copy of them, which is the momentum of stochastic gradient descent.
  std::optional<int64_t> optimiser_bytes = {};
  int64_t frozen_bytes = 0;    // the weights that are not trained
  int64_t prepared_bytes = 0;  // weight copies that the engine prepares for its passes, once a step (bf16)
  int64_t stash_bytes = 0;     // what forward keeps for backward besides outputs
  int64_t scratch_bytes = 0;   // what a call of one of its kernels, or its update, works in
  bool keeps_output = false;   // whether some backward re-reads the output
  double flops = 0;            // of the forward

  double backward_s() const { return backward_input_s + backward_weight_s; }
  double late_weight_s() const { return backward_weight_s + backward_parted_s; }  // as an action of its own
  double compute_s() const { return forward_s + backward_s(); }
  int64_t slot_bytes() const { return optimiser_bytes.value_or(param_bytes); }
};

// A SharedUse is a node's use of a parameter that several nodes have. Each of them counts it among its costs.
struct SharedUse {
  std::string weight;      // full name
  int first = 0;           // the first node that has it
  int param = 0;           // index among the node's parameters
  int64_t bytes = 0;       // of one copy, and of its gradient
  int64_t slot_bytes = 0;  // that the optimiser keeps beside one
};

struct ProfileNode {
  std::string name, op;
  Role role = Role::compute;
  std::vector<int> inputs;      // indices of earlier nodes
  bool needs_gradient = false;  // whether a gradient of the output is ever sent back
  NodeCost cost;
  bool in_place = false;  // whether it changes an input, as PyTorch's ReLU(inplace=True) does
  bool barred = false;    // whether devices of this profile can't have it
  std::vector<std::string> absorbed = {};  // names of the nodes fused into this one; they refer to it
  std::string module = {};  // the PyTorch module whose forward makes the call, where that was recorded
  std::vector<SharedUse> shared = {};

  bool called(std::string_view) const;  // whether this is its own name or that of an absorbed node
};

// A Link is the measured connection of two ranks.
struct Link {
  double bytes_per_s = 0;  // 0: free, infinitely fast
  double latency_s = 0;
  double core_share = 0;  // of its core, which a rank loses while both directions are busy (TCP's work)
  bool is_free() const { return bytes_per_s <= 0 && latency_s <= 0; }
  // The time of so many messages of `bytes` in all, one after the other.
  double seconds(int64_t bytes, int messages = 1) const {
    return messages * latency_s + (bytes_per_s > 0 ? double(bytes) / bytes_per_s : 0);
  }
};

// A SharedWeight is a parameter with all its uses, in the order in which their gradients are added up.
struct SharedWeight {
  int64_t bytes = 0;
  std::vector<ParamUse> uses;  // descending
};

// A SentTensor is what goes once, one way, between the devices that hold these nodes: its producer and its
// consumers, in the forward or in the backward.
struct SentTensor {
  std::vector<int> nodes;  // ascending
  int64_t bytes = 0;
};

struct Profile {
  std::string model, graph_hash, device;
  Precision precision = Precision::float32;
  int microbatch = 0;  // samples
  int threads = 1;     // per rank
  int ranks_at_once = 1;
  Link link;  // between neighbouring ranks of the machine where the profile was taken
  // How tensors travelled ("tensors travel from GPU to GPU by NCCL 2.28.9"); empty: from host memory.
  std::string link_way;
  double overhead_s = 0;  // of one forward or backward action, on top of its nodes
  // The source file names nodes by id ("node7"), so plans do too, and they list inputs in stage 0.
  bool ids_are_names = false;
  // These are the PyTorch modules whose forward runs once, outer ones first. Where they were recorded, nodes
  // are in the order in which the model's code runs.
  std::optional<std::vector<std::string>> called_once = {};
  std::vector<ProfileNode> nodes;
  std::vector<std::vector<int>> together = {};  // sets of nodes that one stage has
  // Where a profile says it: all that is sent. Else each output is, and its gradient back.
  std::optional<std::vector<SentTensor>> sent = {};

  std::vector<std::vector<int>> consumers() const;
  std::vector<SentTensor> sent_tensors() const;      // `sent`, or what follows from the nodes
  std::vector<SharedWeight> shared_weights() const;  // by their first uses
};

// Returns the graph's nodes with all static costs. All times are zero.
Profile unpriced(const Graph& lowered, const std::string& device, const Optimiser& = *default_optimiser());

std::string to_json(const Profile&);
// Throws Error with `origin` (a file name) and the field for malformed JSON, unknown or missing fields,
// negative or non-finite numbers, times above 13 days, sizes that add up to more than a petabyte, inputs that
// are not earlier nodes, and duplicate names.
Profile profile_from_json(const std::string& text, const std::string& origin);

}  // namespace antichain
