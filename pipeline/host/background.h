// One piece of work at a time on a thread of its own, beside training: writing a checkpoint's file. What it
// returns, or the Error it ended with, is picked up later.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "pipeline/host/progress.h"

namespace antichain {

class Background {
 public:
  ~Background();

  struct Outcome {
    bool good = true;
    std::string text;  // what the work returned, or why it failed
  };
  // The work calls `beat` whenever it has got further. Nothing may be under way.
  using Work = std::function<std::string(const std::function<void()>& beat)>;
  void start(Work);

  bool busy() const { return thread_.joinable(); }  // until the outcome was taken
  bool ready() const { return done_; }
  // Waits for it; the watchdog sees it get further, or not.
  Outcome take(Progress&);

 private:
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::atomic<uint64_t> beats_{0};
  Outcome outcome_;
};

}  // namespace antichain
