// What `antichain train` finds out before its first step, so that a run that can't end well does not begin:
// each check is collective, and refuses in one sentence on every rank that says what to do.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "pipeline/stage/memory_need.h"

namespace antichain {

// What a command was told, one option a line ("lr 0.3"), but for the files it writes, which rank 0 alone
// needs.
std::string settings_of(const CLI::App& command);

// Error naming the settings that differ, and the ranks that differ from most.
void check_same_settings(Rank&, const std::string& settings);

// Collective. Error (ExitCode::out_of_memory) with a table of all ranks where those of one host need more
// memory than it has left, or those of one process more address space than it may still take.
enum class MemoryOf { profiling, plan, whole_network };
// A rank whose device has memory of its own needs that device's memory, which ranks that share it share, and
// the host's for the rest.
struct DeviceMemory {
  std::string name;  // as DeviceStreams::device; empty: tensors are in host memory
  int64_t free_bytes = 0;
};
DeviceMemory device_memory(const Context&);
void check_memory(Transport&, MemoryOf, const MemoryNeed& of_this_rank, const DeviceMemory& = {});

// How the estimate came out: of each process of the job, in the order of ranks.
struct ProcessMemory {
  std::string process;  // host and number
  int64_t estimated_bytes = 0, measured_bytes = 0;
};
class MemoryRecord {
 public:
  explicit MemoryRecord(int64_t estimated_bytes);   // of host memory; right before it is allocated
  std::vector<ProcessMemory> compare(Rank&) const;  // collective; on rank 0

 private:
  int64_t estimated_, before_;
};

}  // namespace antichain
