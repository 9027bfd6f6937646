// From options and files to the things the pipeline works on: a lowered graph, a profile, a plan, a schedule. Each is
// either made, or read from the file a user gave. Files are read by rank 0 alone: no other rank needs to have them.
#pragma once

#include <string>
#include <vector>

#include "app/options.h"
#include "framework/graph.h"
#include "pipeline/schedule.h"
#include "pipeline/transport.h"

namespace antichain {

// The named model at one micro-batch, in the layouts of the device. Error when the batch can't be cut evenly.
Graph lowered_network(const NetworkOptions&, const MachineOptions&);

// The texts of the files a user gave; "" for one that was not given. Error when one can't be read, or `schedule` is
// neither a policy nor a file.
struct GivenFiles {
  std::string profile, plan, schedule;
};
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule);
// Collective: rank 0 reads them, after it has seen that it can write `outputs`.
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule,
                            const std::vector<std::string>& outputs, Transport&);

// Collective: the given profile, else one measured under the load of this job. Error when the given one is for another
// network than `lowered`.
Profile obtain_profile(const GivenFiles&, const PlanningOptions&, const NetworkOptions&, const Graph& lowered,
                       Context&, Transport&);

// The given plan, validated, else one made by --method for `stages`.
Plan obtain_plan(const GivenFiles&, const PlanningOptions&, const Profile&, int stages);

// The given schedule, validated, else that of the policy `name`.
Schedule obtain_schedule(const GivenFiles&, const std::string& name, const Profile&, const Plan&,
                         int microbatches);

}  // namespace antichain
