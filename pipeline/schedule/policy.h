// A policy is a named order of computing. It is one row of the table in pipeline/schedule/policy.cpp, which
// is the only list of policies. Help texts, planners, reports and tests ask it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/compute_order.h"
#include "pipeline/schedule/placement.h"

namespace antichain {

struct Policy {
  std::string_view name;
  std::string_view citation;  // the work it comes from; empty where there is none
  bool trains = true;         // whether it has backwards
  bool halves = false;        // whether it parts any backward into its input and weight halves (I and W)
  bool replicas = true;       // whether a stage may have several ranks
  Placement placement = Placement::one_stage;
  // Of an asynchronous policy: by how many updates the weights that a stage trains with are older than in
  // synchronous training. It is null where training is synchronous.
  int (*delay)(int stage, int stages) = nullptr;
  bool stashes = true;  // whether a backward reads the weights of its forward, and not the newest
  // How the weights that a stage trains with are predicted, where they are; the method says what a backward
  // reads. No row of the table has one: see predicting().
  const PredictionMethod* predict = nullptr;
  // This makes the order; compute_orders calls it.
  ComputeOrders (*orders)(const Seats&) = nullptr;
  // This says how many micro-batches of a stage that order begins before it finishes the first. Where there
  // is no such rule, the order is made and they are counted.
  int (*in_flight)(const PipelinePlace&) = nullptr;
  // This returns the least number of micro-batches, from the given one on, that the order can take, or else
  // the most. It is null where the order takes any.
  int (*next_microbatches)(int microbatches, int ranks) = nullptr;

  bool asynchronous() const { return delay != nullptr; }
  // Returns the policy with predictions by this method, if any.
  Policy predicting(const PredictionMethod*) const;
  // Returns the forwards and backwards of every rank, in their order. Throws Error when the policy is not for
  // such a plan or number of micro-batches.
  ComputeOrders compute_orders(const Seats&) const;
  // Throws Error when the order does not take so many micro-batches on so many ranks; it names the next
  // number.
  void check_microbatches(int microbatches, int ranks) const;
  // Returns the rule for planners: in_flight, or what is counted for the stages of these ranks with `chunks`
  // stages each.
  InFlight in_flight_on(int ranks, int chunks, int microbatches) const;

  bool operator==(const Policy& other) const { return name == other.name; }

  // The program asks for these rows by itself: to profile, to evaluate, to cut for a searched order, and as a
  // default.
  static const Policy one_f_one_b, gpipe, zero_bubble_h1, forward_only;
};

// Returns the rule that the orders of these ranks follow: the most that a rank has in flight of each stage.
// Stages have no replicas.
InFlight in_flight_of(const std::vector<std::vector<Action>>& ranks);

std::span<const Policy> policies();
const Policy& policy(std::string_view name);  // Error listing the names there are

// Returns the names of those that train, as a list and as words: "1f1b or gpipe".
std::vector<std::string> training_policies();
std::vector<std::string> synchronous_policies();  // that train, with the bits of one rank
std::string training_policies_in_words();
std::string asynchronous_policies_in_words();
bool is_training_policy(std::string_view name);
// Returns the names of those with this placement, as words.
std::string policies_in_words(Placement);

// Makes a schedule in which replica i of a stage that has r does the micro-batches i, i + r, i + 2r, … Throws
// Error for a plan that does not fit the network or the policy, no micro-batches, and a replica that would
// have none. The schedule is of one step, or of so many in a row.
Schedule make_schedule(const Profile& profile, const Plan&, const Policy&, int microbatches, int steps = 1);
// Makes the schedule that is trained with. Under an asynchronous policy it is of so many steps in a row that
// filling and draining the pipeline takes about a hundredth of the time.
Schedule make_flowing_schedule(const Profile& profile, const Plan&, const Policy&, int microbatches);

}  // namespace antichain
