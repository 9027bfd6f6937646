#include "pipeline/rehearsal_clock.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <cmath>

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
  const std::vector<std::string> hosts = transport.gather(transport.host());
  const bool one = std::ranges::all_of(hosts, [&](const std::string& h) { return h == hosts[0]; });
  return transport.broadcast(one ? "1" : "0") == "1";
}

Tensor one_double(double value) {
  const Tensor tensor = Tensor::host({.shape = {1}, .dtype = DType::f64});
  *tensor.data<double>() = value;
  return tensor;
}

}  // namespace

double clock_offset_s(Transport& transport, const std::function<double()>& mine, int rounds) {
  double offset_s = 0, quickest_s = INFINITY;
  for (int peer = 1; peer < transport.size(); ++peer) {
    transport.barrier();
    if (transport.rank() != 0 && transport.rank() != peer) continue;
    const int other = transport.rank() == 0 ? peer : 0;
    for (int round = 0; round < rounds; ++round) {
      const Tensor got = one_double(0);
      const auto ticket = transport.recv({0, round}, other, got);
      if (transport.rank() == 0) {
        transport.wait(ticket);
        transport.send({0, round}, other, one_double(mine()));
        continue;
      }
      const double asked_s = mine();
      transport.send({0, round}, other, one_double(asked_s));
      transport.wait(ticket);
      const double answered_s = mine(), took_s = answered_s - asked_s;
      if (took_s < quickest_s) offset_s = *got.data<double>() - (asked_s + answered_s) / 2;
      quickest_s = std::min(quickest_s, took_s);
    }
    transport.flush();
  }
  return offset_s;
}

RehearsalClock::RehearsalClock(Transport& transport) : transport_(transport) {
  if (!on_one_host(transport)) offset_s_ = clock_offset_s(transport, monotonic_s);
}

double RehearsalClock::now_s() const { return monotonic_s() + offset_s_; }

void RehearsalClock::sleep_until(double s) const {
  while (s - now_s() > longest_nap_s) {
    nap_until(monotonic_s() + longest_nap_s);
    transport_.activity().beat();
  }
  nap_until(s - offset_s_);
}

}  // namespace antichain
