#include "pipeline/host/stop_signals.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "framework/error.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

constexpr std::array signals = {SIGUSR1, SIGXCPU, SIGHUP, SIGTERM, SIGINT};

// A launcher and a batch system may both forward one signal: a second one within this time is the same one.
constexpr int64_t same_within_ns = 200'000'000;

// Signal handlers write these, so they are lock-free atomics only.
std::atomic<int> first{0};
std::atomic<int64_t> ended_ns{0};  // when the first SIGTERM or SIGINT arrived
std::atomic<bool> training{false};
std::atomic<bool> launched{false};  // a launcher forwards its own end to every rank, and has reported why
std::array<struct sigaction, signals.size()> before;

int64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);  // allowed in a signal handler
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void say(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void hear(int signal) {
  int nobody = 0;
  first.compare_exchange_strong(nobody, signal);
  if (signal == SIGUSR1 || signal == SIGXCPU || (signal == SIGHUP && training)) return;
  const int64_t now = now_ns();
  int64_t never = 0;
  const bool again = !ended_ns.compare_exchange_strong(never, now) && now - never > same_within_ns;
  if (training && !again) return;
  if (again || !launched)
    say(again ? "\nantichain: a second signal: ended at once, what was complete before stays\n"
              : "\nantichain: ended by a signal before the first step\n");
  ::_exit(128 + signal);
}

}  // namespace

StopRequests::StopRequests(Life life) : life_(life) {
  first = 0, ended_ns = 0, training = false, launched = launched_in_parallel();
  struct sigaction action {};
  action.sa_handler = hear;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], &action, &before[i]);
    if (signals[i] == SIGHUP && before[i].sa_handler == SIG_IGN)  // by nohup
      ::sigaction(SIGHUP, &before[i], nullptr);
  }
}

StopRequests::~StopRequests() {
  if (life_ == Life::process) {
    training = true;
    return;
  }
  for (size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before[i], nullptr);
  first = 0;
}

void StopRequests::work_begins() { training = true; }
int StopRequests::heard() { return first; }

void StopRequests::end_if_heard() {
  if (const int number = first; number != 0)
    throw Error(fmt::format("stopped by {}, and nothing was written", signal_name(number)), "start it again",
                ExitCode(128 + number));
}

std::string signal_name(int signal) {
  switch (signal) {
    case SIGUSR1:
      return "SIGUSR1";
    case SIGXCPU:
      return "SIGXCPU";
    case SIGHUP:
      return "SIGHUP";
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    default:
      return fmt::format("signal {}", signal);
  }
}

}  // namespace antichain
