#include "pipeline/host/starved_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace antichain {
namespace {

// The file reads "nanoseconds on a core, nanoseconds ready but without one, times given one".
CoreTime read_core_time(int file) {
  char text[96] = "";
  if (file < 0 || ::pread(file, text, sizeof text - 1, 0) <= 0) return {};
  unsigned long long ran = 0, waited = 0;
  if (std::sscanf(text, "%llu %llu", &ran, &waited) != 2) return {};
  return {1e-9 * double(ran), 1e-9 * double(waited)};
}

}  // namespace

CoreTime core_time(const std::string& schedstat_file) {
  const int file = ::open(schedstat_file.c_str(), O_RDONLY | O_CLOEXEC);
  const CoreTime time = read_core_time(file);
  if (file >= 0) ::close(file);
  return time;
}

StarvedTime::StarvedTime() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  begin_s_ = all_s();
}

StarvedTime::~StarvedTime() {
  if (file_ >= 0) ::close(file_);
}

double StarvedTime::seconds() const { return all_s() - begin_s_; }

double StarvedTime::all_s() const { return read_core_time(file_).waited_s; }

}  // namespace antichain
