// These are the options of `antichain train` for checkpoints, for resuming, and for ending in time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "app/cli/cli_forward.h"
#include "pipeline/train/step_boundary.h"

namespace antichain {

struct CheckpointCommandOptions {
  std::string folder;  // "": none are written
  std::string every;   // "500" steps or "10min"; "": at the end only
  int keep = 2;
  std::string resume;    // auto, a folder of checkpoints, or one of them
  std::string max_time;  // "1h30m", "90min", "5400"
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();  // of the program
};

void add_checkpoint_options(CLI::App&, CheckpointCommandOptions&);
// Throws a usage Error when options contradict each other.
void check(const CheckpointCommandOptions&);

// "500" means every 500 steps; "10min", "90s" and "2h" mean at these intervals of time.
struct Every {
  int64_t steps = 0;
  double seconds = 0;
};
Every parse_every(const std::string&);

// Returns the seconds of "1h30m", "90min", "45s", "2d", or a bare number. Throws a usage Error naming
// `option`.
double parse_duration(const std::string&, const std::string& option);

// Returns the earlier of --max-time's end and the end of the job's time at Slurm, if there is any. Only a run
// that writes checkpoints has a deadline.
std::optional<Deadline> deadline(const CheckpointCommandOptions&);

}  // namespace antichain
