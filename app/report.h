// What the subcommands print in common: a plan's stages, a simulated step.
#pragma once

#include <string>

#include "pipeline/simulate.h"

namespace antichain {

// One line a stage: its nodes, weights, compute time, and what it sends on.
std::string describe(const Plan&, const Profile&);

// Step time, bubble share, speedup over one device, and peak memory per stage.
std::string describe(const Timeline&, const Plan&, const Profile&, const Schedule&);

// The same as data, for --json.
std::string simulation_json(const Timeline&, const Plan&, const Profile&, const Schedule&);

}  // namespace antichain
