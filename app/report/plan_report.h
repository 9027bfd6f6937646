// What the subcommands print of a plan.
#pragma once

#include <string>

#include "app/obtain/plan_task.h"

namespace antichain {

// What is planned for, in two lines: "Objective compute, 32 micro-batches under 1f1b", and the link.
std::string describe(const PlanTask&);

// One line a stage: its devices, nodes, times, what crosses to later stages, and memory. Then how good the
// plan is: its slowest stage, and the bound that proves how much better another one could be.
std::string describe(const Plan&, const Profile&, const PlanTask&);

// The predicted step, in a line.
std::string describe_step(const Plan&, const Profile&, const PlanTask&);

// "resnet18 in micro-batches of 16", or the name alone where the size is not known.
std::string subject(const Profile&);
// What a speedup is over: "one device", or "the fastest device".
std::string one_device(const Cluster&);
// "0-3,6": ascending numbers, runs in short.
std::string ranges(const std::vector<int>&);

}  // namespace antichain
