#include "app/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

namespace antichain {
namespace {

thread_local Progress* beats = nullptr;

void open_what_is_closed() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null",
             number == STDIN_FILENO ? O_RDONLY : O_WRONLY);  // takes the lowest free number: this one
}

// A pipe is ready when it takes PIPE_BUF bytes without blocking.
void wait_until_taken() {
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  while (::poll(&out, 1, 50) == 0)
    if (beats) beats->beat();
}

}  // namespace

void print_beats(Progress* progress) { beats = progress; }

StandardStreams::StandardStreams() {
  open_what_is_closed();
  ::signal(SIGPIPE, SIG_IGN);  // writing then fails with EPIPE instead
  std::fflush(stdout);
  original_ = stdout;
  stream_ = ::fopencookie(this, "w", {.read = nullptr, .write = &write, .seek = nullptr, .close = nullptr});
  if (!stream_) return;
  std::setvbuf(stream_, nullptr, ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF, BUFSIZ);
  stdout = stream_;
}

StandardStreams::~StandardStreams() {
  stdout = original_;
  if (stream_) std::fclose(stream_);
}

ssize_t StandardStreams::write(void* self, const char* bytes, size_t count) {
  static_cast<StandardStreams*>(self)->write_all(bytes, count);
  return ssize_t(count);  // what fails is remembered, not reported: printing never throws
}

void StandardStreams::write_all(const char* bytes, size_t count) {
  while (count > 0 && error_ == 0) {
    wait_until_taken();
    const ssize_t n = ::write(STDOUT_FILENO, bytes, std::min<size_t>(count, PIPE_BUF));
    if (n < 0 && errno != EINTR && errno != EAGAIN) error_ = errno;
    if (n <= 0) continue;
    bytes += n;
    count -= size_t(n);
  }
}

std::string StandardStreams::lost() {
  std::cout.flush();  // has the original stream
  if (std::fflush(original_) != 0 && error_ == 0) error_ = errno;
  std::fflush(stdout);
  return error_ == 0 ? "" : std::strerror(error_);
}

}  // namespace antichain
