// From options and files to the things the pipeline works on: a lowered graph and a schedule
// (app/report/profiling.h: a profile; app/obtain/plan_task.h: a plan). Each is either made, or read from the
// file a user gave. Files are read by rank 0 alone: no other rank needs to have them.
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

// The named model at one micro-batch, in the layouts and by the engines of the rank's device, which is asked
// for them. Error when the batch can't be cut evenly.
Graph lowered_network(const NetworkOptions&, Rank&);
// Outside of any job: those of a rank alone.
Graph lowered_network(const NetworkOptions&, const MachineOptions&);

// The texts of the files a user gave; "" for one that was not given. Error when one can't be read, or
// `schedule` is neither a policy nor a file.
struct GivenFiles {
  std::string profile, plan, cluster, cuts, schedule;
};
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule);
// Collective: rank 0 reads them, after it has seen that it can write `outputs`.
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule,
                            const std::vector<std::string>& outputs, Transport&);

// Whether it is 1f1b or gpipe; the name of a file otherwise.
bool is_policy(const std::string& schedule);

// The given schedule, validated, else that of the policy `name`.
Schedule obtain_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                         int microbatches);
// And an Error where it has no backwards.
Schedule obtain_training_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                                  int microbatches);

}  // namespace antichain
