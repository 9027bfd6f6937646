#include "app/cli/standard_streams.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "app/cli/output_file.h"
#include "framework/printed.h"
#include "framework/stream_write.h"

namespace antichain {
namespace {

void open_what_is_closed() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null",
             number == STDIN_FILENO ? O_RDONLY : O_WRONLY);  // gets the lowest free number: this one
}

}  // namespace

StandardStreams::StandardStreams() {
  open_what_is_closed();
  free_standard_output();
  ::signal(SIGPIPE, SIG_IGN);  // so that writing fails with EPIPE instead
  std::fflush(stdout);
  original_ = stdout;
  stream_ = ::fopencookie(this, "w", {.read = nullptr, .write = &write, .seek = nullptr, .close = nullptr});
  if (!stream_) return;
  std::setvbuf(stream_, nullptr, _IOLBF,
               BUFSIZ);  // in a file too, so that the log of a killed job has every line
  stdout = stream_;
}

StandardStreams::~StandardStreams() {
  free_standard_output();
  stdout = original_;
  if (stream_) std::fclose(stream_);
}

ssize_t StandardStreams::write(void* self, const char* bytes, size_t count) {
  static_cast<StandardStreams*>(self)->write_all(bytes, count);
  return ssize_t(count);  // failures are remembered, not reported: printing never throws
}

void StandardStreams::write_all(const char* bytes, size_t count) {
  printed({bytes, count});
  const int to = printing_descriptor();
  if (to == STDERR_FILENO)
    write_to_stream(STDERR_FILENO, bytes, count);  // failures are dropped
  else if (to == STDOUT_FILENO && error_ == 0)
    error_ = write_to_stream(STDOUT_FILENO, bytes, count);
}

std::string StandardStreams::lost() {
  std::cout.flush();  // it holds the original stream
  if (std::fflush(original_) != 0 && error_ == 0) error_ = errno;
  std::fflush(stdout);
  const bool nobody_reads = error_ == EPIPE;  // the reader, such as head, has ended
  return error_ == 0 || nobody_reads ? "" : std::strerror(error_);
}

}  // namespace antichain
