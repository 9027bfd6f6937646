// What planning can be told, by every command that plans: each option is declared once, so that a name means
// the same everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "partition/plan/plan_options.h"

namespace antichain {

constexpr const char* default_objective = "makespan";  // the step that training takes

struct PlanningOptions {
  std::string profile_file, plan_file, cluster_file;
  std::string profile_cache = "auto";  // app/obtain/profile_cache.h
  int stages = 0;  // 0: as replicas or cuts say, else one per device of the cluster, else one per rank
  bool at_most = false;
  std::string method = "antichain", objective = default_objective;
  std::string replicas = "off";                       // or auto, or a count for every stage
  std::string cuts;                                   // node names, or the name of a file
  double link_bytes_per_s = -1, link_latency_s = -1;  // negative: as the cluster or the profile says
  int64_t memory_bytes = -1;                          // negative: as the cluster says; 0: unlimited
  int64_t max_states = PlanOptions().max_states;
};

void add_planning_options(CLI::App&, PlanningOptions&);
// Of commands that measure.
void add_profile_cache_option(CLI::App&, PlanningOptions&);

// "off", "auto" or "2,1,1". Usage Error when it is none of these.
Replicas parse_replicas(const std::string&);
// "node4,node7", or nothing. Usage Error when a name is missing.
std::vector<std::string> parse_names(const std::string&);
// Usage Error where cuts are given that no method asked for would look at.
void check(const PlanningOptions&, bool all_methods = false);

}  // namespace antichain
