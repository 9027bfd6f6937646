#include "app/cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/cli/terminal.h"

namespace antichain {
namespace {

constexpr int widest_bar = 30, narrowest_bar = 8;

}  // namespace

std::string duration(double seconds) {
  const auto all = int64_t(std::max(seconds, 0.0) + 0.5);
  if (all < 3600) return fmt::format("{}:{:02}", all / 60, all % 60);
  return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
}

namespace {

double seconds_left(int64_t done, int64_t total, double elapsed_s) {
  return done > 0 ? elapsed_s * double(total - done) / double(done) : 0;
}

std::string with_bar(const std::string& text, int64_t done, int64_t total, int columns) {
  if (columns == 0) return text;
  if (int(text.size()) > columns) return text.substr(0, size_t(columns));
  const auto width = size_t(std::clamp(columns - int(text.size()) - 3, 0, widest_bar));
  if (width < size_t(narrowest_bar)) return text;
  const auto filled = total > 0 ? size_t(double(done) / double(total) * double(width)) : 0;
  return "[" + std::string(filled, '=') + std::string(width - filled, ' ') + "] " + text;
}

}  // namespace

std::string ProgressBar::render(const ProgressState& s, double elapsed_s, int columns) {
  const auto text = [&](const std::string& loss) {
    return fmt::format("epoch {}  step {}/{}  {}  {:.0f} {}/s  left {}", s.epoch, s.done, s.total, loss,
                       s.tokens > 0 ? s.images_per_s * double(s.tokens) : s.images_per_s,
                       s.tokens > 0 ? "tokens" : "images",
                       duration(seconds_left(s.done - s.before, s.total - s.before, elapsed_s)));
  };
  const std::string mean = s.mean_loss ? fmt::format(" (mean {:.4f})", *s.mean_loss) : "";
  const bool hits = !std::isnan(s.accuracy);
  const std::string accuracy = hits ? fmt::format("  accuracy {:.1f} %", s.accuracy * 100) : "";
  const std::string all = text(fmt::format("loss {:.4f}{}{}", s.loss, mean, accuracy));
  if (columns == 0 || int(all.size()) <= columns || !s.mean_loss)
    return with_bar(all, s.done, s.total, columns);
  const std::string share = hits ? fmt::format("  {:.1f} %", s.accuracy * 100) : "";
  return with_bar(text(fmt::format("mean loss {:.4f}{}", *s.mean_loss, share)), s.done, s.total, columns);
}

std::string ProgressBar::render(int64_t done, int64_t total, const std::string& text, double elapsed_s,
                                int columns) {
  return with_bar(
      fmt::format("{}  {}/{}  left {}", text, done, total, duration(seconds_left(done, total, elapsed_s))),
      done, total, columns);
}

std::string ProgressBar::render_share(double share, double left_s, const std::string& text, int columns) {
  constexpr int64_t all = 1'000'000;
  return with_bar(fmt::format("{}  left {}", text, duration(left_s)), int64_t(share * all), all, columns);
}

ProgressBar::ProgressBar(std::FILE* out) : out_(out), columns_(terminal_columns(out)) {}

bool ProgressBar::is_due(bool last) {
  const Clock::time_point now = Clock::now();
  const auto pause = columns_ > 0 ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10'000);
  if (now - shown_ < pause && !last) return false;
  shown_ = now;
  return true;
}

void ProgressBar::show_line(const std::string& line) {
  if (columns_ > 0) {
    fmt::print(out_, "\r\x1b[K{}", line);  // clears the line
    open_ = true;
  } else {
    fmt::print(out_, "{}\n", line);
  }
  std::fflush(out_);
}

void ProgressBar::show(const ProgressState& state) {
  if (is_due(state.done == state.total)) show_line(render(state, elapsed_s(), width()));
}

void ProgressBar::show(int64_t done, int64_t total, const std::string& text) {
  if (is_due(done == total)) show_line(render(done, total, text, elapsed_s(), width()));
}

void ProgressBar::show_share(double share, double left_s, const std::string& text) {
  if (columns_ == 0 && shown_ == Clock::time_point()) shown_ = start_;
  if (is_due(false)) show_line(render_share(share, left_s, text, width()));
}

void ProgressBar::give_way() {
  if (open_) fmt::print(out_, "\r\x1b[K");
  open_ = false;
  std::fflush(out_);
}

void ProgressBar::say(const std::string& line) {
  give_way();
  fmt::print(out_, "{}\n", line);
  std::fflush(out_);
}

void ProgressBar::finish() {
  if (open_) fmt::print(out_, "\n");
  open_ = false;
}

}  // namespace antichain
