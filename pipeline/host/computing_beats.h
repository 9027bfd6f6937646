// Computing such as a planner's search has no steps to tell of. Time on a core is its progress, and
// ComputingBeats tells the watchdog of it.
#pragma once

#include <atomic>
#include <thread>

#include "pipeline/host/progress.h"

namespace antichain {

// While it lives, the rank beats as long as the thread that made it computes. A thread that waits or sleeps
// makes no progress. The rank's thread must not beat meanwhile.
class ComputingBeats {
 public:
  explicit ComputingBeats(Progress&);
  ~ComputingBeats();
  ComputingBeats(const ComputingBeats&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace antichain
