#include "framework/say.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/new_file.h"
#include "framework/printable.h"

namespace antichain {
namespace {

constexpr int pause_ms = 50;  // between two looks at a reader that pauses

thread_local std::function<void()> beats;

// Waits until a pipe takes PIPE_BUF bytes without blocking. Returns false when the patience ends first.
bool wait_until_taken(int descriptor, double patience_s) {
  pollfd out{.fd = descriptor, .events = POLLOUT, .revents = 0};
  for (double waited_s = 0; ::poll(&out, 1, pause_ms) == 0; waited_s += pause_ms * 1e-3) {
    if (beats) beats();
    if (patience_s > 0 && waited_s >= patience_s) return false;
  }
  return true;
}

struct Log {
  std::mutex mutex;
  PlainText text;
  std::string kept;  // until there is a file
  std::optional<GrowingFile> file;
  bool no_memory = false;
  std::atomic<bool> on{false};
};

// The log is never destroyed, because the process writes to its standard streams to the very end.
Log& log() {
  static Log& one = *new Log;
  return one;
}

constexpr double last_patience_s = 2;

std::string plain(Tone tone, const std::string& sentence) {
  return (tone == Tone::warning ? "antichain: warning: " : "antichain: ") + sentence + "\n";
}

std::atomic<SentenceShape> shape{&plain};
std::atomic<bool> without_notes = false;

void write(Tone tone, const std::string& text, double patience_s) {
  printed("\r" + text);  // in a log, in the place of a bar that is not finished
  if (tone == Tone::note && without_notes) return;
  write_to_stream(STDERR_FILENO, text.data(), text.size(), patience_s);
}

// Flushes the header, so that an error stands below it in a log of both streams. A thread that is printing
// now flushes by itself.
void flush_standard_output() {
  if (::ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  ::funlockfile(stdout);
}

}  // namespace

void shape_sentences(SentenceShape wanted) { shape = wanted ? wanted : &plain; }

void leave_out_notes(bool so) { without_notes = so; }

void say(Tone tone, const std::string& sentence) noexcept {
  try {
    flush_standard_output();
    write(tone, shape.load()(tone, printable_lines(sentence)), 0);
  } catch (...) {  // there is no memory left for the text
  }
}

void say_last(const std::string& sentence) noexcept {
  try {
    write(Tone::error, "\n" + shape.load()(Tone::error, printable_lines(sentence)), last_patience_s);
  } catch (...) {
  }
}

void while_writing_waits(std::function<void()> beat) { beats = std::move(beat); }

int write_to_stream(int descriptor, const char* bytes, size_t count, double patience_s) noexcept {
  while (count > 0) {
    if (!wait_until_taken(descriptor, patience_s)) return ETIMEDOUT;
    const ssize_t n = ::write(descriptor, bytes, std::min<size_t>(count, PIPE_BUF));
    if (n < 0 && errno != EINTR && errno != EAGAIN) return errno;
    if (n <= 0) continue;
    bytes += n;
    count -= size_t(n);
  }
  return 0;
}

std::string PlainText::add(std::string_view bytes) {
  std::string lines;
  for (const char c : bytes) {
    if (state_ == State::escape) {
      state_ = c == '[' ? State::sequence : State::text;
    } else if (state_ == State::sequence) {
      if (c >= '@' && c <= '~') state_ = State::text;
    } else if (c == '\x1b') {
      state_ = State::escape;
    } else if (c == '\n') {
      lines += line_ + '\n';
      line_.clear(), returned_ = false;
    } else if (c == '\r') {
      returned_ = true;
    } else {
      if (returned_) line_.clear();
      returned_ = false;
      line_ += c;
    }
  }
  return lines;
}

void keep_what_is_printed() { log().on = true; }

void write_what_is_printed(const std::string& file, bool append) {
  Log& all = log();
  const std::lock_guard lock(all.mutex);
  all.file.emplace(file, append);
  if (append) all.file->add("\n");
  all.file->add(std::exchange(all.kept, {}));
}

std::string why_print_is_lost() {
  const std::lock_guard lock(log().mutex);
  if (log().no_memory) return "there was no memory left for it";
  return log().file ? log().file->lost() : "";
}

void printed(std::string_view text) noexcept {
  Log& all = log();
  if (!all.on) return;
  try {
    const std::lock_guard lock(all.mutex);
    const std::string lines = all.text.add(text);
    if (all.file)
      all.file->add(lines);
    else
      all.kept += lines;
  } catch (...) {
    all.no_memory = true;
  }
}

}  // namespace antichain
