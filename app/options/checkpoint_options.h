// What `antichain train` can be told about checkpoints, going on from one, and ending in time.
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
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();  // the program
};

void add_checkpoint_options(CLI::App&, CheckpointCommandOptions&);
// Usage Error on what makes no sense.
void check(const CheckpointCommandOptions&);

// "500": every 500 steps; "10min", "90s", "2h": every so much time.
struct Every {
  int64_t steps = 0;
  double seconds = 0;
};
Every parse_every(const std::string&);

// Seconds of "1h30m", "90min", "45s", "2d", or a bare number of seconds. Usage Error naming `option`.
double parse_duration(const std::string&, const std::string& option);

// The earlier of --max-time's end and that of the job's time at Slurm, if there is any: only where
// checkpoints are written.
std::optional<Deadline> deadline(const CheckpointCommandOptions&);

}  // namespace antichain
