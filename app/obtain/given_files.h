// These are the files that the user gave in place of what the program would make itself. Only rank 0 reads
// them, so the other ranks need not have them.
#pragma once

#include <string>
#include <vector>

#include "app/options/planning_options.h"
#include "pipeline/transport/job.h"

namespace antichain {

// Holds the texts of the files that the user gave; "" where none was given. Reading throws Error when a file
// can't be read, or `schedule` is neither a policy to train with nor a file.
struct GivenFiles {
  std::string profile, plan, cluster, cuts, schedule;
  std::string recompute;  // its file's text, or the name that stands for one
};
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule);
// Collective: rank 0 reads them, after checking that it can write `outputs`.
GivenFiles read_given_files(const PlanningOptions&, const std::string& schedule,
                            const std::vector<std::string>& outputs, Job&);

}  // namespace antichain
