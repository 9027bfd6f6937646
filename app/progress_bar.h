// The line a user watches: how far the run is, loss, accuracy, images/s and the time left. On a terminal one line that
// is rewritten; elsewhere (a log file, a batch job) now and then a line of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace antichain {

struct ProgressState {
  int64_t done = 0, total = 0;  // steps
  int64_t epoch = 0;
  double loss = 0, accuracy = 0, images_per_s = 0;
};

class ProgressBar {
 public:
  explicit ProgressBar(std::FILE* out);
  void show(const ProgressState&);
  // Prints a line of its own, above the bar.
  void say(const std::string& line);
  void finish();  // leaves the last state standing

  static std::string render(const ProgressState&, double elapsed_s, int width);

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* out_;
  bool terminal_, open_ = false;
  Clock::time_point start_ = Clock::now(), shown_{};
};

// "3:07", "1:02:45"
std::string duration(double seconds);

}  // namespace antichain
