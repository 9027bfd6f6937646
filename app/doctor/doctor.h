// `antichain doctor` has two halves: facts are measured on every rank, and findings are a pure function of
// all facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/job/job.h"
#include "partition/profile/profile.h"
#include "pipeline/program/memory_shares.h"

namespace antichain {

// One row of the table of engines that come in modules (framework/module.h).
struct EngineFacts {
  std::string missing;  // why the module is not there, "" when it is
  int present = 0;      // pieces of its hardware, as the host's driver lists them
};

struct RankFacts {
  std::string host, version, mpi, device, locale;
  std::vector<EngineFacts> engines;
  std::vector<int> cores;  // the cores that the rank is bound to
  int host_cores = 0, threads = 1;
  double starved_share = 0;   // of a short computation: the time for which others had the rank's core
  double load = 0;            // ready threads on the host: the mean of the last minute
  int64_t memory_bytes = 0;   // available
  int64_t locked_bytes = -1;  // that the rank may lock; -1: no limit
  int64_t shared_bytes = 0;   // free in /dev/shm
  std::string folder;         // why the checkpoint folder can't be used; "" when it can, or none is given
  int64_t folder_free_bytes = 0;
};
std::string to_text(const RankFacts&);
RankFacts facts_from_text(const std::string&);

struct JobFacts {
  std::vector<RankFacts> ranks;
  Link link;                            // the slowest pair's
  std::string link_way;                 // how tensors go there; empty: from host memory
  std::vector<double> clock_offset_s;   // of each rank against rank 0
  std::string folder;                   // of checkpoints; "" when none is given
  double folder_bytes_per_s = 0;        // speed of writing and syncing, by rank 0
  std::string not_shared;               // why it is not one folder for all ranks, or ""
  int checkpoints = 0;                  // number in the folder
  std::string damaged;                  // what is wrong with the newest of them, or ""
  std::string whole;                    // the newest complete one, "" where there is none
  bool threads_of_one_process = false;  // else ranks are processes
  std::string data;                     // a description of the data
  std::string data_missing;             // what a run would do without them
  std::string data_problem;
  std::vector<MemoryShares> memory;  // that a planned step takes, by rank; empty where no profile is given
};

// Collective; the result is complete on rank 0.
JobFacts examine(Rank&, const std::string& checkpoint_folder);

enum class Health { ok, warning, problem };
struct Finding {
  Health health = Health::ok;
  std::string about, what, advice;  // the advice is empty where all is well
};
std::vector<Finding> diagnose(const JobFacts&);
Health worst(const std::vector<Finding>&);
std::string describe(const std::vector<Finding>&);  // a table, and the advice below it
// Returns the table of what each rank's memory is taken by (app/job/memory_table.h); "" where none is known.
std::string describe_memory(const JobFacts&);
std::string to_json(const std::vector<Finding>&);

}  // namespace antichain
