// The subcommands print these texts about a simulated step.
#pragma once

#include <string>

#include "app/obtain/plan_task.h"
#include "app/report/plan_figures.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

// Returns the width of a drawn timeline in characters: the requested one, or for 0 that of text_columns().
int grid_width(int asked);

// Returns step time, bubble share, speedup over one device, and memory by rank.
std::string describe(const Timeline&, const Plan&, const Profile&, const Schedule&, const PlanTask&);

// Returns the same as data, for --json, with the plan's figures and the time that reading the profile took.
std::string simulation_json(const Timeline&, const Plan&, const Profile&, const Schedule&, const PlanFigures&,
                            double reading_s);

}  // namespace antichain
