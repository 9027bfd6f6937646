#include "pipeline/host/time_limit.h"

#include <chrono>
#include <utility>

namespace antichain {

TimeLimit::TimeLimit(double seconds, std::function<void()> over) {
  if (seconds <= 0) return;
  thread_ = std::thread([this, seconds, over = std::move(over)] {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done_; })) over();
  });
}

TimeLimit::~TimeLimit() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace antichain
