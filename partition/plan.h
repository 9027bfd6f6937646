// A plan cuts a network into stages and gives each stage its ranks. It is a file (plan.json): what `plan --json`
// writes is what `train --plan` reads.
//
// A stage is the difference of two nested down-sets of the network: every edge goes from a stage to itself or to a
// later one. Nodes of role `input` belong to no stage.
#pragma once

#include <string>
#include <vector>

#include "partition/profile.h"

namespace antichain {

struct PlanStage {
  std::vector<int> nodes;  // ascending indices into the profile
  std::vector<int> ranks;  // one rank, or one per replica
};

struct Plan {
  std::string model, graph_hash, method, objective;
  std::vector<PlanStage> stages;
  double bottleneck_s = 0;   // of the objective, as the planner predicts it
  double lower_bound_s = 0;  // no plan of as many stages can have a smaller bottleneck
  int64_t states = 0;        // antichains searched
  double planning_s = 0;

  // How much slower than the bound the slowest stage is, as a share of the bound. A bound of 0 without a bottleneck
  // of 0 (a plan by hand) proves nothing.
  double gap() const { return lower_bound_s > 0 ? bottleneck_s / lower_bound_s - 1 : 0; }
  bool proved_optimal() const { return states > 0 && bottleneck_s <= lower_bound_s; }

  int ranks() const;
  std::vector<int> stage_of(int nodes) const;  // per node; −1 for input nodes
};

// The stage a rank works on. Error when the plan has none for it.
const PlanStage& stage_of_rank(const Plan&, int rank);

// Error naming the offending stage or node: empty plan, empty stage, node missing or twice, unknown node, an edge
// that goes backwards (a cycle between stages), a rank missing or twice, a plan for another model.
void validate(const Plan&, const Profile&);

// Writes node names beside indices, and per-stage figures; validates first.
std::string to_json(const Plan&, const Profile&);
// Error with `origin` and the field: malformed JSON, unknown fields, a stage out of sequence, negative or repeated
// nodes or ranks. Figures (times, bytes, names, bounds) may be absent; of these, those of stages are not read.
Plan plan_from_json(const std::string& text, const std::string& origin);

// 16 hexadecimal digits over model, graph, stages and ranks: equal on ranks that hold the same plan, whatever it cost
// to find.
std::string plan_hash(const Plan&);

}  // namespace antichain
