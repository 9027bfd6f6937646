#include "framework/printed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

struct Log {
  std::mutex mutex;
  PlainText text;
  std::string kept;
  int file = -1, error = 0;
  std::atomic<bool> on{false};

  void write(std::string_view lines) {
    while (!lines.empty() && error == 0) {
      const ssize_t n = ::write(file, lines.data(), lines.size());
      if (n < 0 && errno != EINTR) error = errno;
      if (n > 0) lines.remove_prefix(size_t(n));
    }
  }
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
  all.file = ::open(file.c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (append ? 0 : O_TRUNC), 0644);
  if (all.file < 0)
    throw Error(fmt::format("can't write {}: {}", file, std::strerror(errno)),
                "check the folder, its permissions and the free space");
  if (append) all.write("\n");
  all.write(std::exchange(all.kept, {}));
}

std::string why_print_is_lost() {
  const std::lock_guard lock(log().mutex);
  return log().error == 0 ? "" : std::strerror(log().error);
}

void printed(std::string_view text) noexcept {
  Log& all = log();
  if (!all.on) return;
  try {
    const std::lock_guard lock(all.mutex);
    const std::string lines = all.text.add(text);
    if (all.file >= 0)
      all.write(lines);
    else
      all.kept += lines;
  } catch (...) {  // there is no memory left for the text
    all.error = ENOMEM;
  }
}

}  // namespace antichain
