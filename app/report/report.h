// What the subcommands print of a simulated step.
#pragma once

#include <string>

#include "app/obtain/plan_task.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

// Of a drawn timeline, in characters: the asked one, or for 0 as text_columns() says.
int grid_width(int asked);

// Step time, bubble share, speedup over one device, and peak memory per stage.
std::string describe(const Timeline&, const Plan&, const Profile&, const Schedule&, const PlanTask&);

// The same as data, for --json.
std::string simulation_json(const Timeline&, const Plan&, const Profile&, const Schedule&);

}  // namespace antichain
