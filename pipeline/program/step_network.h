// A StepNetwork is the network as the memory of a step sees it: what each node reads, what it writes, and
// what its backward reads again. It comes from a lowered graph, or, with less detail, from a profile.
#pragma once

#include <map>
#include <vector>

#include "framework/graph.h"
#include "partition/profile/profile.h"

namespace antichain {

// A StepWeight is a parameter that is trained, as its gradient lies among those of the stage.
struct StepWeight {
  int64_t room_bytes = 0;
  int param = -1;       // index; −1 for all that a profile does not tell apart
  bool shared = false;  // whether other nodes have it, too
  bool whole = false;   // whether its update needs all of it (framework/by_element.h)
};

struct StepNode {
  std::string name;
  std::vector<int> inputs = {};  // earlier nodes
  Role role = Role::compute;
  bool needs_gradient = false;              // whether the gradient of the output is ever needed
  bool has_backward = false;                // whether a backward calls it
  bool learns = false;                      // whether it has parameters that are trained
  TensorSpec output = {};                   // of one micro-batch, as all tensors here
  std::vector<TensorSpec> stash = {};       // what its forward keeps for its backward besides outputs
  std::vector<TensorSpec> statistics = {};  // what its forward leaves for the update
  std::vector<bool> rereads_input = {};     // in its backward
  bool rereads_output = false;              // in its backward
  bool adds_dx = false, adds_dy = false;    // framework/op.h, Lowering
  bool in_place = false;                    // framework/in_place.h
  std::vector<StepWeight> weights = {};     // as their gradients lie in memory
  std::map<int, TensorSpec> shared = {};    // by index, the parameters that other nodes have, too

  bool rereads(int input) const;
};
using StepNetwork = std::vector<StepNode>;

StepNetwork step_network(const Graph& lowered, const Optimiser& = *default_optimiser());
// A profile only says whether some backward reads an output again. All of them count as doing so, tensors are
// flat, and no update counts as needing all of a weight.
StepNetwork step_network(const Profile&);

}  // namespace antichain
