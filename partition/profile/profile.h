// A profile is the network as the planner, the scheduler and the simulator see it: a directed acyclic graph
// whose nodes have prices. It is a file (profile.json) that one can read, diff, edit and pass back in.
//
// Static prices (bytes, FLOPs) come from the graph; times are measured on the hardware, under the load of the
// run: `ranks_at_once` says how many ranks of one host ran the same kernels at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"

namespace antichain {

// Times are seconds for one micro-batch, bytes are for one micro-batch (output, stash) or in all (param,
// buffer).
struct NodeCost {
  // An inseparable op has it all in the second.
  double forward_s = 0, backward_input_s = 0, backward_weight_s = 0;
  double update_s = 0;  // the optimiser's pass over the parameters, once per step
  int64_t output_bytes = 0;
  int64_t param_bytes = 0;     // one copy of the weights
  int64_t prepared_bytes = 0;  // what the engine makes of them for its passes, once a step (bf16)
  int64_t stash_bytes = 0;     // what forward keeps for backward besides outputs
  bool keeps_output = false;   // whether some backward re-reads the output
  double flops = 0;            // forward

  double backward_s() const { return backward_input_s + backward_weight_s; }
  double compute_s() const { return forward_s + backward_s(); }
};

struct ProfileNode {
  std::string name, op;
  Role role = Role::compute;
  std::vector<int> inputs;      // indices of earlier nodes
  bool needs_gradient = false;  // whether a gradient of the output is ever sent back
  NodeCost cost;
  std::vector<std::string> absorbed = {};  // names of nodes fused into this one: they mean this one

  bool called(std::string_view) const;  // its own or an absorbed name
};

// The link between two ranks as measured: time of a message = latency_s + bytes / bytes_per_s.
struct Link {
  double bytes_per_s = 0;  // 0: free, infinitely fast
  double latency_s = 0;
  double seconds(int64_t bytes) const {
    return latency_s + (bytes_per_s > 0 ? double(bytes) / bytes_per_s : 0);
  }
};

struct Profile {
  std::string model, graph_hash, device;
  Precision precision = Precision::float32;
  int microbatch = 0;  // samples
  int threads = 1;     // per rank
  int ranks_at_once = 1;
  Link link;  // between neighbouring ranks of the machine it was taken on
  // How tensors went there ("tensors travel from GPU to GPU by NCCL 2.28.9"); empty: from host memory.
  std::string link_way;
  double overhead_s = 0;  // of one forward or backward action besides its nodes
  // The file that this came from names nodes by id ("node7"), so plans do too, and list inputs in stage 0.
  bool ids_are_names = false;
  std::vector<ProfileNode> nodes;

  std::vector<std::vector<int>> consumers() const;
};

// The graph's nodes with everything that needs no measurement: all times are zero.
Profile unpriced(const Graph& lowered, const std::string& device);

std::string to_json(const Profile&);
// Error with `origin` (a file name) and the offending field: malformed JSON, unknown or missing fields,
// negative or non-finite numbers, times above 13 days, sizes that add up to more than a petabyte, inputs that
// are not earlier nodes, duplicate names.
Profile profile_from_json(const std::string& text, const std::string& origin);

}  // namespace antichain
