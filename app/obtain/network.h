// This file turns options and files into what the pipeline works on: a lowered graph and a schedule.
// (Profiles are in app/report/profiling.h and plans in app/obtain/plan_task.h.) Each is either made, or read
// from the user's file. Only rank 0 reads files, so the other ranks need not have them.
#pragma once

#include <string>
#include <vector>

#include "app/job/job.h"
#include "app/options/options.h"
#include "app/options/planning_options.h"
#include "framework/graph.h"
#include "pipeline/schedule/schedule.h"
#include "pipeline/transport/transport.h"

namespace antichain {

// Returns the named model at one micro-batch, in the layouts and by the engines of the rank's device. Throws
// Error when the batch can't be divided evenly.
Graph lowered_network(const NetworkOptions&, Rank&);
// Does the same outside of any job, for a single rank.
Graph lowered_network(const NetworkOptions&, const MachineOptions&);

// Holds the texts of the files that the user gave; "" where none was given. Reading throws Error when a file
// can't be read, or `schedule` is neither a policy to train with nor a file.
struct GivenFiles {
  std::string profile, plan, cluster, cuts, schedule;
};
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule);
// Collective: rank 0 reads them, after checking that it can write `outputs`.
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule,
                            const std::vector<std::string>& outputs, Job&);

// Returns the given schedule, validated, else that of the policy `name`.
Schedule obtain_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                         int microbatches);
// Does the same, and throws Error where the schedule has no backwards.
Schedule obtain_training_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                                  int microbatches);

}  // namespace antichain
