// From options to the things the pipeline works on: a lowered graph, a profile, a plan, a schedule. Each is either
// made or read from the file a user gave.
#pragma once

#include <string>

#include "app/options.h"
#include "framework/graph.h"
#include "pipeline/schedule.h"
#include "pipeline/transport.h"

namespace antichain {

// The named model at one micro-batch, in the layouts of the device. Error listing the models and devices there are.
Graph lowered_network(const NetworkOptions&, const MachineOptions&, float label_smoothing = 0);

Profile read_profile(const std::string& file);
// Error when it is not a plan for this network.
Plan read_plan(const std::string& file, const Profile&);

// Collective: the profile of --profile (read by rank 0), else measured under the load of this job. Error when a file's
// profile is for another network than `lowered`.
Profile obtain_profile(const PlanningOptions&, const NetworkOptions&, const Graph& lowered, Context&,
                       Transport&);

// A policy's schedule, or the one in a file; validated.
Schedule obtain_schedule(const std::string& name_or_file, const Profile&, const Plan&, int microbatches);

}  // namespace antichain
