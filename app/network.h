// From options and files to the things the pipeline works on: a lowered graph, a profile, a schedule (app/plan_task.h: a
// plan). Each is either made, or read from the file a user gave. Files are read by rank 0 alone: no other rank needs to have them.
#pragma once

#include <string>
#include <vector>

#include "app/options.h"
#include "app/planning_options.h"
#include "framework/graph.h"
#include "pipeline/schedule.h"
#include "pipeline/transport.h"

namespace antichain {

// The named model at one micro-batch, in the layouts of the device. Error when the batch can't be cut evenly.
Graph lowered_network(const NetworkOptions&, const MachineOptions&);

// The texts of the files a user gave; "" for one that was not given. Error when one can't be read, or `schedule` is
// neither a policy nor a file.
struct GivenFiles {
  std::string profile, plan, cluster, cuts, schedule;
};
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule);
// Collective: rank 0 reads them, after it has seen that it can write `outputs`.
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule,
                            const std::vector<std::string>& outputs, Transport&);

// The given profile. Error when it is for another network than `lowered`, or of a kind that nothing can be run by.
Profile given_profile(const GivenFiles&, const PlanningOptions&, const Graph& lowered);
// Collective: the given one, else one measured before (app/profile_cache.h; rank 0 says so in one line), else one measured under
// the load of this job, and kept.
Profile obtain_profile(const GivenFiles&, const PlanningOptions&, const NetworkOptions&, const Graph& lowered,
                       Context&, Transport&);
// Collective: measured now, and kept.
Profile measured_profile(const PlanningOptions&, const NetworkOptions&, const Graph& lowered, Context&,
                         Transport&,
                         double seconds = 0);  // about so long; 0: as long as is usual for the device

// Whether it is 1f1b or gpipe; the name of a file otherwise.
bool is_policy(const std::string& schedule);

// The given schedule, validated, else that of the policy `name`.
Schedule obtain_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                         int microbatches);
// And an Error where it has no backwards.
Schedule obtain_training_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                                  int microbatches);

}  // namespace antichain
