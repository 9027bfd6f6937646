// A single rank does not start MPI, so it is not notified when mpirun is killed. A LauncherWatch notices
// that.
#pragma once

#include <atomic>
#include <thread>

namespace antichain {

// When the process that started this one ends during the watch's life, this process gets SIGTERM. So it stops
// with everything saved (pipeline/host/stop_signals.h) instead of running on unnoticed. Without a launcher
// nothing happens.
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
