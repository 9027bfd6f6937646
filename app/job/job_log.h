// The lines with which a job's log explains itself: what ran, on what, told what. Its end is in
// app/report/time_report.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/job/job.h"
#include "app/job/job_gpus.h"

namespace antichain {

struct JobStart {
  std::vector<std::string> command;  // as this process was started
  std::vector<std::string> hosts;    // by rank
  std::vector<int> cores;            // by rank: that it may run on
  std::vector<RankGpu> gpus;         // by rank; none where ranks compute in host memory
  int threads = 1;                   // of each rank
  std::string device, started;       // "2026-11-21 14:22:16 UTC"
};

// "Command   antichain train …": a line of that beginning.
std::string log_line(const std::string& head, const std::string& text);

// Collective; of rank 0 it is whole.
JobStart job_start(const Rank&);

// Program, revision and libraries; command; hosts with their ranks and cores; time; and what Slurm calls the
// job.
std::string describe(const JobStart&);
nlohmann::ordered_json to_json(const JobStart&);

// "n1: ranks 0-3, n2: ranks 4-7"
std::string hosts_in_short(const std::vector<std::string>& host_of_rank);

}  // namespace antichain
