// This file declares the options of every command that plans, each once, so that a name means the same
// everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "partition/plan/method.h"
#include "partition/plan/plan_options.h"
#include "partition/profile/pipedream_profile.h"

namespace antichain {

constexpr Objective default_objective = Objective::makespan;  // the step time of training

struct PlanningOptions {
  std::string profile_file, plan_file, cluster_file;
  std::string profile_cache = "auto";  // app/obtain/profile_cache.h
  double measure_s = 0;                // about how long to measure a profile; 0: as usual for the device
  int stages = 0;  // 0: from replicas or cuts, else one per device of the cluster, else one per rank
  int chunks = 0;  // stages a rank; 0: as many as the schedule has
  std::string overlap_steps = "auto";  // or on, off
  std::string in_flight;  // most micro-batches in flight, for all ranks or for each; "": the default
  bool at_most = false;
  std::string method{name_of(Method::antichain)}, objective{name_of(default_objective)};
  std::string replicas = "off";                       // or auto, or a count for every stage
  std::string shard_optimiser = "auto";               // or on, off
  std::string cuts;                                   // node names, or the name of a file
  std::optional<double> backward_split;               // of PipeDream's graph.txt; empty: default_weight_share
  double link_bytes_per_s = -1, link_latency_s = -1;  // negative: as the cluster or the profile says
  std::string recompute = "none";                     // or all, auto, or a file of nodes
  int64_t memory_bytes = -1;                          // negative: as the cluster says; 0: unlimited
  int64_t max_states = PlanOptions().max_states;
  bool max_states_given = false;
};

void add_planning_options(CLI::App&, PlanningOptions&);
// Adds the options of commands that measure a profile. `seconds` names the one that says for how long.
void add_measuring_options(CLI::App&, PlanningOptions&, const std::string& seconds = "--profile-seconds");

// Parses "off", "auto" or "2,1,1". Throws a usage Error when it is none of these.
Replicas parse_replicas(const std::string&);
// Parses "auto", "on" or "off". Steps overlap unless it is off. What keeps them apart is for the caller to
// say.
Steps parse_overlap(const std::string&);
// Parses "4", "4,3,2,1" or nothing. Throws a usage Error when it is none of these.
std::vector<int> parse_in_flight(const std::string&);
// Parses "node4,node7", or nothing. Throws a usage Error when a name is missing.
std::vector<std::string> parse_names(const std::string&);
// Throws a usage Error where cuts are given that none of the requested methods uses, or another option that
// nothing reads. `antichains` says whether the command searches them whatever the method is.
void check(const PlanningOptions&, const std::string& schedule, bool all_methods = false,
           bool antichains = false);

}  // namespace antichain
