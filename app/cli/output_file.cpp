#include "app/cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/error.h"
#include "framework/json.h"
#include "framework/say.h"
#include "framework/stream_write.h"

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

OutputStream::~OutputStream() { ::close(descriptor_); }

void OutputStream::write(const std::string& text) const {
  const int error = write_to_stream(descriptor_, text.data(), text.size());
  if (error != 0 && error != EPIPE)
    throw Error(fmt::format("can't write {}: {}", file_, std::strerror(error)), "name a file elsewhere");
}

}  // namespace antichain
