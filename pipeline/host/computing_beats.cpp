#include "pipeline/host/computing_beats.h"

#include <pthread.h>
#include <time.h>

#include <chrono>

namespace antichain {
namespace {

double time_on_a_core_s(clockid_t thread) {
  timespec t{};
  ::clock_gettime(thread, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

}  // namespace

ComputingBeats::ComputingBeats(Progress& progress) {
  clockid_t mine;
  if (::pthread_getcpuclockid(::pthread_self(), &mine) != 0) return;
  thread_ = std::thread([this, mine, &progress] {
    double told_s = time_on_a_core_s(mine);
    while (!done_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const double computed_s = time_on_a_core_s(mine) - told_s;
      if (computed_s < 1e-3) continue;
      told_s += computed_s;
      progress.beat();
    }
  });
}

ComputingBeats::~ComputingBeats() {
  done_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace antichain
