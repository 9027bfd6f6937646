#include "pipeline/rehearse/rehearsal_clock.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "pipeline/transport/clock_offset.h"

namespace antichain {
namespace {

constexpr double longest_nap_s = 1;  // without a beat for the watchdog

double monotonic_s() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

void nap_until(double s) {
  const double whole = std::floor(s);
  timespec t{.tv_sec = time_t(whole), .tv_nsec = long((s - whole) * 1e9)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

bool on_one_host(Transport& transport) {
  const std::vector<std::string> hosts = transport.job().gather(transport.job().host());
  const bool one = std::ranges::all_of(hosts, [&](const std::string& h) { return h == hosts[0]; });
  return transport.job().broadcast(one ? "1" : "0") == "1";
}

}  // namespace

RehearsalClock::RehearsalClock(Transport& transport) : transport_(transport) {
  if (!on_one_host(transport)) offset_s_ = clock_offset_s(transport, monotonic_s);
}

double RehearsalClock::now_s() const { return monotonic_s() + offset_s_; }

void RehearsalClock::sleep_until(double s) const {
  while (s - now_s() > longest_nap_s) {
    nap_until(monotonic_s() + longest_nap_s);
    transport_.job().activity().beat();
  }
  nap_until(s - offset_s_);
}

}  // namespace antichain
