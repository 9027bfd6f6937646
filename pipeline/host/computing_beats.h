// ComputingBeats reports progress to the watchdog during a long computation without steps, such as a
// planner's search. Time on a core counts as progress.
#pragma once

#include <atomic>
#include <thread>

#include "pipeline/host/progress.h"

namespace antichain {

// While this object lives, the rank beats as long as the thread that made it computes. A thread that waits or
// sleeps makes no progress. The rank's thread must not beat meanwhile.
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
