// A policy is a named order of computing: one row of the table in pipeline/schedule/policy.cpp, which is the
// only list of policies. Help texts, planners, reports and tests ask it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

struct Seat;

struct Policy {
  std::string_view name;
  std::string_view citation;    // the work it comes from; empty where there is none
  bool trains = true;           // whether it has backwards
  bool halves = false;          // whether it parts any backward into its input and weight halves (I and W)
  bool replicas = true;         // whether a stage may have several ranks
  bool several_stages = false;  // whether a rank may have several stages
  // The order below; compute_order asks for it.
  std::vector<Action> (*order)(const std::vector<Seat>& of_rank) = nullptr;
  InFlight in_flight = nullptr;  // how many micro-batches that order begins before it finishes the first

  // The forwards and backwards of one rank, in their order. The rank's seats ascend by stage. Error when the
  // policy is not for such a plan.
  std::vector<Action> compute_order(const std::vector<Seat>& of_rank) const;

  bool operator==(const Policy& other) const { return name == other.name; }

  // Rows that the program asks for by itself: to profile, to evaluate, and as a default.
  static const Policy one_f_one_b, gpipe, forward_only;
};

std::span<const Policy> policies();
const Policy& policy(std::string_view name);  // Error listing the names there are

// The names of those that train, and as words: "1f1b or gpipe".
std::vector<std::string> training_policies();
std::string training_policies_in_words();
bool is_training_policy(std::string_view name);

// Replica i of a stage that has r does the micro-batches i, i + r, i + 2r, …
// Error on a plan that does not fit the network, no micro-batches, a replica that would have none.
Schedule make_schedule(const Profile& profile, const Plan&, const Policy&, int microbatches);

}  // namespace antichain
