// This measures what it costs a step that ranks can be watched and stopped. The cost is that of telling the
// watchdog what is done, of the watchdog's thread, and of the word about signals and checkpoints at the
// step's end. It is relative to a step of ResNet-20, the fastest network there is.
//
//   poll_cost [--at-most PERCENT]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "partition/planners/planner.h"
#include "pipeline/host/progress.h"
#include "pipeline/host/stop_signals.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using Clock = std::chrono::steady_clock;

double cpu_s(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

template <class Work>
double seconds_each(const Work& work) {
  constexpr int times = 200'000;
  const double start = cpu_s(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < times; ++i) work(i);
  return (cpu_s(CLOCK_THREAD_CPUTIME_ID) - start) / times;
}

// Returns the share of a core, while it watches a rank that sleeps.
double share_of_watchdog() {
  constexpr double slept_s = 3;
  double used_s = 0;
  const auto sleep = [&](JobTransport&) {
    const double before = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(std::chrono::duration<double>(slept_s));
    used_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - before;
  };
  run_ranks(1, sleep, {.watchdog_s = 300});
  return used_s / slept_s;
}

struct Step {
  double seconds = 0;
  int64_t beats = 0;  // on the rank that has most
};

Step resnet20_step() {
  Step step;
  std::vector<double> seconds;
  test::TrainingCase c{.model = "resnet20", .microbatch = 4, .microbatches = 4, .steps = 15, .rate = 0.01f};
  c.on_step = [&](const StepReport& report) { seconds.push_back(report.seconds); };
  const auto plan = [](const Profile& profile, int stages) {
    return plan_antichain(profile, {.stages = stages, .cluster = one_link({.bytes_per_s = 1e9})});
  };
  const auto schedule = [&](const Profile& profile, const Plan& plan, int microbatches) {
    const Schedule made = make_schedule(profile, plan, Policy::one_f_one_b, microbatches);
    // There is a beat where an action begins, where a wait begins and ends, and where the step begins and
    // ends.
    for (const auto& actions : made.ranks) step.beats = std::max(step.beats, 3 * int64_t(actions.size()) + 8);
    return made;
  };
  test::train_on_threads(c, 2, plan, schedule);
  std::ranges::sort(seconds);
  step.seconds = seconds[seconds.size() / 2];
  return step;
}

int run(double at_most) {
  Progress progress;
  const std::string text = "2B3 backward of micro-batch 3 on stage 2";
  const double telling_s = seconds_each([&](int) { progress.doing(text); });
  size_t length = 0;
  const double word_s = seconds_each(
      [&](int i) { length += fmt::format("{} {}", StopRequests::heard(), i < 0 ? "news" : "").size(); });
  const double watching = share_of_watchdog();
  const Step step = resnet20_step();
  const double share = (double(step.beats) * telling_s + word_s) / step.seconds + watching;
  fmt::print("telling what is done {:6.1f} ns, at most {} times a step\n", 1e9 * telling_s, step.beats);
  fmt::print("the word at its end  {:6.1f} ns\n", 1e9 * word_s + 0 * double(length));
  fmt::print("the watchdog's thread {:.5f} % of a core\n", 100 * watching);
  fmt::print("a step of resnet20, 16 images on 2 ranks {:.2f} ms\n", 1e3 * step.seconds);
  fmt::print("all of it {:.4f} % of the step\n", 100 * share);
  return 100 * share <= at_most ? 0 : 1;
}

}  // namespace
}  // namespace antichain

int main(int argc, char** argv) { return antichain::run(argc > 2 ? std::stod(argv[2]) : 100); }
