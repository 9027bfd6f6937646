#include "framework/stream_write.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

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

}  // namespace

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

}  // namespace antichain
