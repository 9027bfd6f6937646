// A TimeLimit guards a call that may never return, such as the one that starts MPI before any watchdog
// exists.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace antichain {

// Calls `over` on its own thread after `seconds`; 0 means never.
class TimeLimit {
 public:
  TimeLimit(double seconds, std::function<void()> over);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace antichain
