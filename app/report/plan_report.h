// The subcommands print these texts about a plan.
#pragma once

#include <string>

#include "app/obtain/plan_task.h"

namespace antichain {

// Returns the planning task in two lines: "Objective compute, 32 micro-batches under 1f1b", and the link.
std::string describe(const PlanTask&);

// Returns one line a stage: its devices, nodes, times, bytes that cross to later stages, and memory. After
// them come the plan's slowest stage, and the bound that shows how much better another plan could be.
std::string describe(const Plan&, const Profile&, const PlanTask&);

// Sets the step of the schedule `auto` beside the shortest that any order of this plan can have, in one line.
std::string describe_order(const PlanTask&, const Profile&, const Plan&, double pace_s);
// Returns the predicted step in one line; for `auto` in two.
std::string describe_step(const Plan&, const Profile&, const PlanTask&);

// Returns a line that says what `--schedule auto` would gain over a plan that was made here for a named
// schedule, and what memory it would take; "" where that is less than 1 %, or not to be had. It searches for
// two seconds at most.
std::string describe_faster(const Plan&, const Profile&, const PlanTask&);

// Returns the table of what each rank's memory is taken by in a step (app/job/memory_table.h).
std::string describe_memory(const Plan&, const Profile&, const Schedule&);

// Returns "resnet18 in micro-batches of 16", or only the name where the size is unknown.
std::string subject(const Profile&);
// Returns a stage's number of nodes and its ends: "14: conv1 to layer1.1.conv2".
std::string layers_in_short(const PlanStage&, const Profile&);
// Returns "device 3", and what of it is not the same for all devices of the cluster: "device 3, speed 0.5".
std::string device_in_short(int device, const Cluster&);
// Returns what a speedup is relative to: "one device", or "the fastest device".
std::string one_device(const Cluster&);
// Returns ascending numbers with ranges abbreviated: "0-3,6".
std::string ranges(const std::vector<int>&);

}  // namespace antichain
