#include "app/progress_bar.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "pipeline/launch.h"

namespace antichain {
namespace {

constexpr int widest_bar = 30, narrowest_bar = 8, usual_columns = 80;

int columns_of(int file) {
  winsize size{};
  if (isatty(file) != 1) return 0;
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_columns;
}

}  // namespace

int terminal_columns(std::FILE* out) {
  if (columns_of(fileno(out)) == 0 || !launched_in_parallel()) return columns_of(fileno(out));
  const int launcher =
      ::open(fmt::format("/proc/{}/fd/1", getppid()).c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK);
  if (launcher < 0) return 0;
  const int columns = columns_of(launcher);
  ::close(launcher);
  return columns;
}

std::string duration(double seconds) {
  const auto all = int64_t(std::max(seconds, 0.0) + 0.5);
  if (all < 3600) return fmt::format("{}:{:02}", all / 60, all % 60);
  return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

std::string ProgressBar::render(const ProgressState& s, double elapsed_s, int columns) {
  const double left_s = s.done > 0 ? elapsed_s * double(s.total - s.done) / double(s.done) : 0;
  const std::string text =
      fmt::format("epoch {}  step {}/{}  loss {:.4f}  accuracy {:.1f} %  {:.0f} images/s  left {}{}", s.epoch,
                  s.done, s.total, s.loss, s.accuracy * 100, s.images_per_s, duration(left_s),
                  s.note.empty() ? "" : "  " + s.note);
  if (columns == 0) return text;
  if (int(text.size()) > columns) return text.substr(0, size_t(columns));
  const auto width = size_t(std::clamp(columns - int(text.size()) - 3, 0, widest_bar));
  if (width < size_t(narrowest_bar)) return text;
  const auto filled = s.total > 0 ? size_t(double(s.done) / double(s.total) * double(width)) : 0;
  return "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] " + text;
}

ProgressBar::ProgressBar(std::FILE* out) : out_(out), columns_(terminal_columns(out)) {}

void ProgressBar::show(const ProgressState& state) {
  const Clock::time_point now = Clock::now();
  const auto pause = columns_ > 0 ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
  if (now - shown_ < pause && state.done != state.total) return;
  shown_ = now;
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  if (columns_ > 0) {
    fmt::print(out_, "\r\x1b[K{}",
               render(state, elapsed_s, columns_ - 1));  // clears the line; -1: no wrapping
    open_ = true;
  } else {
    fmt::print(out_, "{}\n", render(state, elapsed_s, 0));
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
