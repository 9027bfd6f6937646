// These are the checks of `antichain train` before its first step, so that a run that can't end well does not
// start. Each check is collective, and refuses in one sentence on every rank that says what to do.
#pragma once

#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "app/job/job.h"
#include "app/job/memory_table.h"

namespace antichain {

// Returns a command's options, one a line ("lr 0.3"), without the files it writes, which only rank 0 needs.
std::string settings_of(const CLI::App& command);

// Throws Error naming the settings that differ, and the ranks that differ from most.
void check_same_settings(Rank&, const std::string& settings);

// Collective. Throws Error (ExitCode::out_of_memory) with a table of all ranks where the ranks of one host
// need more memory than it has left, or those of one process more address space than it may still use.
enum class MemoryOf { profiling, plan, whole_network };
// A rank whose device has its own memory needs that memory, which ranks on the same device share. For the
// rest it needs the host's.
struct DeviceMemory {
  std::string name;  // DeviceStreams::device; empty: tensors are in host memory
  int64_t free_bytes = 0;
};
DeviceMemory device_memory(const Context&);
void check_available_memory(Job&, MemoryOf, const MemoryNeed& of_this_rank, const DeviceMemory& = {});
// Collective. Returns whether all hosts have what their ranks need more of than now, in host memory.
bool has_room_for(Job&, const MemoryNeed& next, const MemoryNeed& now);

// A MemoryRecord compares the peak after begin() with the memory where it was constructed: after the network
// was lowered, so that the code which the engine generates is there, and before a profile is measured.
class MemoryRecord {
 public:
  MemoryRecord();
  // Call it right before allocating. Of a rank whose device has its own memory, the host's is compared.
  void begin(const MemoryNeed&, const DeviceMemory&);
  // Collective. Returns a row for each process, in the order of ranks, on rank 0.
  std::vector<MemoryRow> compare(Rank&) const;

 private:
  MemoryNeed need_;  // of host memory, where all of it is there
  int64_t before_, estimated_ = 0;
};

}  // namespace antichain
