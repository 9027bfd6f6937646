#include "framework/printed.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "framework/growing_file.h"

namespace antichain {
namespace {

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

}  // namespace

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
