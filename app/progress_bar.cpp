#include "app/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace antichain {

std::string duration(double seconds) {
  const auto all = int64_t(std::max(seconds, 0.0) + 0.5);
  if (all < 3600) return fmt::format("{}:{:02}", all / 60, all % 60);
  return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

std::string ProgressBar::render(const ProgressState& s, double elapsed_s, int width) {
  const double share = s.total > 0 ? double(s.done) / double(s.total) : 0;
  const auto filled = size_t(share * width);
  const double left_s = s.done > 0 ? elapsed_s * double(s.total - s.done) / double(s.done) : 0;
  const std::string bar =
      width > 0 ? "[" + std::string(filled, '=') + std::string(size_t(width) - filled, ' ') + "] " : "";
  return fmt::format("{}epoch {}  step {}/{}  loss {:.4f}  accuracy {:.1f} %  {:.0f} images/s  left {}", bar,
                     s.epoch + 1, s.done, s.total, s.loss, s.accuracy * 100, s.images_per_s,
                     duration(left_s));
}

ProgressBar::ProgressBar(std::FILE* out) : out_(out), terminal_(isatty(fileno(out)) == 1) {}

void ProgressBar::show(const ProgressState& state) {
  const Clock::time_point now = Clock::now();
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
  if (now - shown_ < pause && state.done != state.total) return;
  shown_ = now;
  const std::string line =
      render(state, std::chrono::duration<double>(now - start_).count(), terminal_ ? 24 : 0);
  if (terminal_) {
    fmt::print(out_, "\r\x1b[K{}", line);  // to the line's begin, clear it
    open_ = true;
  } else {
    fmt::print(out_, "{}\n", line);
  }
  std::fflush(out_);
}

void ProgressBar::say(const std::string& line) {
  fmt::print(out_, "{}{}\n", open_ ? "\r\x1b[K" : "", line);
  open_ = false;
  std::fflush(out_);
}

void ProgressBar::finish() {
  if (open_) fmt::print(out_, "\n");
  open_ = false;
}

}  // namespace antichain
