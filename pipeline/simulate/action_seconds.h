// This file computes how long each rank takes for each verb of a schedule: its stage's nodes added up, on its
// device. The simulator and the rehearsal both take their times from here.
#pragma once

#include <array>
#include <vector>

#include "partition/profile/cluster.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {

// Seconds by verb. Loads, sends and recvs take 0; a reduce takes 0 where the stage has one rank.
using ActionSeconds = std::array<double, size_t(Verb::update) + 1>;

// Returns the times per rank. Throws Error when the plan names a device that the cluster lacks.
std::vector<ActionSeconds> action_seconds(const Plan&, const Profile&, const Cluster&);

}  // namespace antichain
