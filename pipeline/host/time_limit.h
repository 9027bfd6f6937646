// A TimeLimit guards a call that may never come back, such as one that begins MPI before any watchdog is
// there.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace antichain {

// Calls `over` on a thread of its own when it has lived for `seconds`; 0 stands for never.
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
