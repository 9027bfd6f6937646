// A single rank does not begin MPI, so nobody tells it when mpirun is killed: it looks for itself.
#pragma once

#include <atomic>
#include <thread>

namespace antichain {

// While a LauncherWatch lives and the process that started this one goes, this one gets SIGTERM, and so stops
// with everything saved (pipeline/host/stop_signals.h) instead of running on where nobody knows of it.
// Nothing happens where no launcher started it.
class LauncherWatch {
 public:
  LauncherWatch();
  ~LauncherWatch();
  LauncherWatch(const LauncherWatch&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace antichain
