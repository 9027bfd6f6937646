#include "pipeline/starved_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace antichain {

StarvedTime::StarvedTime() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  begin_s_ = all_s();
}

StarvedTime::~StarvedTime() {
  if (file_ >= 0) ::close(file_);
}

double StarvedTime::seconds() const { return all_s() - begin_s_; }

// "nanoseconds on a core, nanoseconds ready but without one, times given one"
double StarvedTime::all_s() const {
  char text[96] = "";
  if (file_ < 0 || ::pread(file_, text, sizeof text - 1, 0) <= 0) return 0;
  unsigned long long ran = 0, waited = 0;
  return std::sscanf(text, "%llu %llu", &ran, &waited) == 2 ? 1e-9 * double(waited) : 0;
}

}  // namespace antichain
