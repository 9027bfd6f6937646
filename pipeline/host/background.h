// A Background runs one piece of work at a time on its own thread, beside training, such as writing a
// checkpoint file. The caller picks up its result, or the Error it ended with, later.
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
  // The work calls `beat` whenever it makes progress. No other work may be running when one is started.
  using Work = std::function<std::string(const std::function<void()>& beat)>;
  void start(Work);

  bool busy() const { return thread_.joinable(); }  // until its outcome has been taken
  bool ready() const { return done_; }
  // Waits for the work. Meanwhile the watchdog sees whether the work makes progress.
  Outcome take(Progress&);

 private:
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::atomic<uint64_t> beats_{0};
  Outcome outcome_;
};

}  // namespace antichain
