#include "app/cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>

#include "framework/error.h"
#include "framework/json.h"
#include "framework/say.h"

namespace antichain {
namespace {

std::string kept_for;  // the option whose result owns standard output; set while the command line is parsed
std::atomic<bool> quiet = false;
int kept_stream = -1;  // standard output, while libraries that print to it write to standard error

bool is_standard_output(const std::string& file) {
  constexpr std::array names = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
  return std::ranges::find(names, file) != names.end();
}

// Names of descriptors are links to the open file. A plain file behind such a name must not be replaced by
// another file.
bool names_a_descriptor(const std::string& file) {
  return file == "/dev/stderr" || file.starts_with("/dev/fd/") || file.starts_with("/proc/self/fd/");
}

}  // namespace

bool is_stream(const std::string& file) {
  if (is_standard_output(file) || names_a_descriptor(file)) return true;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  return std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
}

void keep_standard_output(const std::string& option, const std::string& file) {
  if (!is_standard_output(file)) return;
  if (!kept_for.empty() && kept_for != option)
    throw Error(fmt::format("{} and {} can't both be written to standard output", kept_for, option),
                "name a file for one of them", ExitCode::usage);
  if (kept_stream < 0) {
    kept_stream = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept_stream >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  kept_for = option;
}

void free_standard_output() {
  if (kept_stream >= 0) {
    ::dup2(kept_stream, STDOUT_FILENO);
    ::close(std::exchange(kept_stream, -1));
  }
  kept_for.clear();
  quiet = false;
  leave_out_notes(false);
}

void be_quiet() {
  quiet = true;
  leave_out_notes(true);
}

void begin_answer() {
  std::fflush(stdout);  // writes out earlier text first
  if (kept_for.empty()) quiet = false;
}

int printing_descriptor() {
  if (quiet) return -1;
  return kept_for.empty() ? STDOUT_FILENO : STDERR_FILENO;
}

void write_output(const std::string& file, const std::string& text) {
  if (file.empty()) return;
  if (is_stream(file))
    OutputStream(file).write(text);
  else
    write_file(file, text);
}

OutputStream::OutputStream(const std::string& file)
    : file_(is_standard_output(file) ? "standard output" : file),
      descriptor_(is_standard_output(file) ? ::dup(kept_stream < 0 ? STDOUT_FILENO : kept_stream)
                                           : ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY)) {
  if (descriptor_ < 0)
    throw Error(fmt::format("can't write {}: {}", file_, std::strerror(errno)), "name a file");
}

void OutputStream::write(const std::string& text) const {
  const int error = write_to_stream(descriptor_, text.data(), text.size());
  if (error != 0 && error != EPIPE)
    throw Error(fmt::format("can't write {}: {}", file_, std::strerror(error)), "name a file elsewhere");
}

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
