// A job's log explains itself by these lines: what ran, where, and with which options. The lines at its end
// are in app/report/time_report.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job/job.h"
#include "app/job/job_gpus.h"

namespace antichain {

struct JobStart {
  std::vector<std::string> command;  // the words that started this process
  std::vector<std::string> hosts;    // by rank
  std::vector<int> cores;            // by rank: cores that it may run on
  std::vector<RankGpu> gpus;         // by rank; none where ranks compute in host memory
  int threads = 1;                   // of each rank
  std::string device, started;       // "2026-11-21 14:22:16 UTC"
};

// Returns program, revision and libraries.
nlohmann::ordered_json provenance();
// Returns the words as they would be typed in a shell.
std::string shell_words(const std::vector<std::string>&);

// Returns a line that begins with `head`: "Command   antichain train …".
std::string log_line(const std::string& head, const std::string& text);

// Collective; the result is complete on rank 0.
JobStart job_start(const Rank&);

// Returns program, revision and libraries, the command, the hosts with their ranks and cores, the time, and
// Slurm's name for the job.
std::string describe(const JobStart&);
nlohmann::ordered_json to_json(const JobStart&);

// Returns "n1: ranks 0-3, n2: ranks 4-7".
std::string hosts_in_short(const std::vector<std::string>& host_of_rank);

}  // namespace antichain
