// A ProgressBar is the line that a user watches: how far the run is, loss, accuracy, images/s (of text
// tokens/s) and the time left. On a terminal one line is rewritten. Elsewhere (a log file, a batch job) it
// prints a new line now and then.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace antichain {

struct ProgressState {
  int64_t done = 0, total = 0;  // steps
  int64_t before = 0;           // part of `done`: by an earlier start
  int64_t epoch = 0;
  double loss = 0, accuracy = 0, images_per_s = 0;
  int64_t tokens = 0;               // of a sample, where there are any: then it shows tokens/s
  std::optional<double> mean_loss;  // of the last steps, because a single batch says little
};

class ProgressBar {
 public:
  explicit ProgressBar(std::FILE* out);
  ~ProgressBar() { finish(); }  // so that an error message gets a line of its own
  void show(const ProgressState&);
  // Shows work without epochs: "text  done/total  left 0:12".
  void show(int64_t done, int64_t total, const std::string& text);
  // Shows work whose end is estimated: "text  left 0:12". Without a terminal it does so only for work of more
  // than ten seconds.
  void show_share(double share, double left_s, const std::string& text);
  // Prints a separate line, above the bar.
  void say(const std::string& line);
  void give_way();  // before text on another stream
  void finish();    // keeps the last state on the screen

  // Returns one line of at most `columns` characters; 0 columns mean no limit and no drawn bar. A bar is
  // drawn where it has room.
  static std::string render(const ProgressState&, double elapsed_s, int columns);
  static std::string render(int64_t done, int64_t total, const std::string& text, double elapsed_s,
                            int columns);
  static std::string render_share(double share, double left_s, const std::string& text, int columns);

 private:
  using Clock = std::chrono::steady_clock;
  bool is_due(bool last);
  void show_line(const std::string& line);
  double elapsed_s() const { return std::chrono::duration<double>(shown_ - start_).count(); }
  int width() const { return columns_ > 0 ? columns_ - 1 : 0; }  // −1: no wrapping
  std::FILE* out_;
  int columns_;  // of the terminal; 0: it is none
  bool open_ = false;
  Clock::time_point start_ = Clock::now(), shown_{};
};

// Returns "3:07" or "1:02:45".
std::string duration(double seconds);

}  // namespace antichain
