// A plan cuts a network into stages and gives each stage its ranks. It is a file (plan.json): what `plan
// --json` writes is what `train --plan` reads.
//
// A stage is the difference of two nested down-sets of the network: every edge goes from a stage to itself or
// to a later one. Nodes of role `input` belong to no stage. A stage may have several ranks, which are its
// replicas, and a rank may have several stages, one after the other or far apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partition/plan/objective.h"
#include "partition/profile/profile.h"

namespace antichain {

struct PlanStage {
  std::vector<int> nodes;    // ascending indices into the profile
  std::vector<int> ranks;    // one rank, or one per replica
  std::vector<int> devices;  // of the cluster, one per rank; empty: rank r has device r
  // These nodes' outputs and stashes are not kept for the backward, which computes them again. They ascend,
  // and are among `nodes`.
  std::vector<int> recomputed = {};
  // This counts what each of its ranks needs, as planned: weights, gradients, what the optimiser keeps, what
  // is kept in flight, and what the backward computes again.
  int64_t memory_bytes = 0;
};

struct Plan {
  std::string model, graph_hash;
  std::string method;  // that made these stages; "by hand" where they were written or edited in a file
  std::optional<Objective> objective;  // none where a person wrote the plan
  std::vector<PlanStage> stages;
  // Whether the replicas of a stage share out the optimiser's state (ZeRO-1, pipeline/program/shards.h).
  bool shard_optimiser = false;
  double bottleneck_s =
      0;              // the slowest stage; where the objective counts transfers, or the slowest boundary
  double step_s = 0;  // predicted by simulation, from an empty pipeline to an empty one; 0: not simulated
  // The predicted distance of equal actions of consecutive steps in the steady state. It equals step_s where
  // steps do not overlap.
  double period_s = 0;
  double lower_bound_s = 0;  // of the objective: no plan for the same devices can be better
  // A hash of what the bound was proved for (pipeline/planning/schedule_choice.h); empty where nobody knows.
  std::string bound_for;
  int64_t states = 0;  // antichains searched
  double planning_s = 0;

  // Returns how much slower than the bound the slowest stage is, as a share of the bound. A bound of 0
  // without a bottleneck of 0 (a plan by hand) proves nothing.
  double gap() const { return lower_bound_s > 0 ? objective_s() / lower_bound_s - 1 : 0; }
  bool proved_optimal() const { return states > 0 && objective_s() <= lower_bound_s; }
  // Returns what the objective names: the simulated step or period, or the bottleneck.
  double objective_s() const;
  // Returns what a step costs a run of many: the period where it is known.
  double pace_s() const { return period_s > 0 ? period_s : step_s; }

  int ranks() const;                           // how many there are: one more than the largest
  int device_of(int rank) const;               // of the cluster
  std::vector<int> stage_of(int nodes) const;  // per node; −1 for input nodes
};

// Returns the plan of one stage, with so many replicas: ranks 0, 1, ….
Plan one_stage(const Profile&, int replicas = 1);

// Returns the stages that a rank works on, ascending. Throws Error when the plan has none for it.
std::vector<int> stages_of_rank(const Plan&, int rank);
// Returns the nodes of these stages, ascending. Throws Error when the plan has none for the rank.
std::vector<int> nodes_of_rank(const Plan&, int rank);
// Returns the only stage that a rank works on. Throws Error when the plan has none for it, or several.
const PlanStage& stage_of_rank(const Plan&, int rank);
// Throws Error naming the stage that has replicas although one of their ranks has other stages, too. What
// trains or rehearses calls this first.
void check_replicas_have_one_stage(const Plan&);
bool has_replicas(const Plan&);               // whether any stage has several ranks
bool has_several_stages_a_rank(const Plan&);  // whether any rank has several stages

// Throws Error naming the offending stage or node, for: an empty plan; an empty stage; a node that is
// missing, unknown or there twice; an edge that goes backwards (a cycle between stages); a node
// that is recomputed and is a loss, or of another stage; a rank that is missing, or twice in one stage; a
// device with two ranks, or a rank with two devices; nodes apart that sit together; a plan for another model.
void validate(const Plan&, const Profile&);

// Writes node names beside indices, and the figures of each stage. It validates the plan first.
std::string to_json(const Plan&, const Profile&);
// Throws Error with `origin` and the field for malformed JSON, unknown fields, a stage out of sequence,
// negative or repeated nodes, and ranks that one stage repeats. Figures (times, bytes, names, bounds) may be
// absent. Those of stages are not read.
Plan plan_from_json(const std::string& text, const std::string& origin);
// Does the same for files that name nodes by index or by name. Where the profile's ids are names, inputs that
// stage 0 lists are left out again. Throws Error also when the network has no node of that name.
Plan plan_from_json(const std::string& text, const std::string& origin, const Profile&);

// Returns 16 hexadecimal digits over model, graph, stages and ranks. They are equal on ranks that hold the
// same plan, whatever it cost to find.
std::string plan_hash(const Plan&);

}  // namespace antichain
