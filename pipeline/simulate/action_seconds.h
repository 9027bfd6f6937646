// How long each rank takes for each verb of a schedule: its stage's nodes added up, on its device. The one
// source of such times for all who put times to a schedule: the simulator, and the rehearsal.
#pragma once

#include <array>
#include <vector>

#include "partition/profile/cluster.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Seconds by verb; loads, sends and recvs: 0. A reduce is nothing where the stage has one rank.
using ActionSeconds = std::array<double, size_t(Verb::update) + 1>;

// Per rank. Error when the plan names a device that the cluster lacks.
std::vector<ActionSeconds> action_seconds(const Plan&, const Profile&, const Cluster&);

}  // namespace antichain
