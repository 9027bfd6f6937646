// These tests say for how long a thread had no core: of two that want one core, one always waits, and one
// that sleeps does not. The system counts that, so no load of the machine changes the tests of a process.
#include "pipeline/host/core_time.h"

#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <filesystem>
#include <thread>

#include "pipeline/host/seconds.h"
#include "tests/pipeline/host/without_core.h"

namespace antichain {
namespace {

double seconds(clockid_t clock) {
  timespec t;
  ::clock_gettime(clock, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

class CoreTime : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/thread-self/schedstat"))
      GTEST_SKIP() << "this system does not count it";
  }
};
class Starved : public CoreTime {};  // by the clock
class ThreadsWithoutACore : public CoreTime {};

TEST_F(Starved, OneOfTwoOnACoreWaits) {
  constexpr double work_s = 0.15;  // of each
  std::barrier begin(2);
  double starved_s[2] = {}, wall_s[2] = {};
  const auto compute = [&](int me) {
    share_a_core();
    const double begin_s = seconds(CLOCK_MONOTONIC);
    const StarvedTime starved;
    begin.arrive_and_wait();
    const double end_s = seconds(CLOCK_THREAD_CPUTIME_ID) + work_s;
    while (seconds(CLOCK_THREAD_CPUTIME_ID) < end_s) {
    }
    wall_s[me] = seconds(CLOCK_MONOTONIC) - begin_s;
    starved_s[me] = starved.seconds();
  };
  std::thread other(compute, 1);
  compute(0);
  other.join();
  // Until the first is done, which takes its work, the other waits whenever it runs.
  EXPECT_GE(starved_s[0] + starved_s[1], work_s * 0.9) << "but for what is counted when a thread next runs";
  for (const int me : {0, 1})
    EXPECT_LE(starved_s[me], wall_s[me] - work_s + 1e-3) << "its work is none of it";
}

TEST_F(Starved, SleepingIsNotStarving) {
  const double begin_s = seconds(CLOCK_MONOTONIC);
  const StarvedTime starved;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // However late it is woken.
  EXPECT_LE(starved.seconds(), seconds(CLOCK_MONOTONIC) - begin_s - 0.05);
}

TEST_F(ThreadsWithoutACore, AThreadWithoutACoreIsCountedAlsoWhileItWaits) {
  const double begin_s = now_s();
  StarvedThreads starved(::getpid());
  const StarvedThread thread;
  while (starved.seconds() < 0.3) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    starved.look();
  }
  EXPECT_LE(starved.seconds(), now_s() - begin_s);
}

TEST_F(ThreadsWithoutACore, WhoSleepsHasNoNeedOfACore) {
  const double begin_s = now_s();
  StarvedThreads starved(::getpid());
  std::atomic<bool> done{false};
  std::thread sleeper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    done = true;
  });
  while (!done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    starved.look();
  }
  sleeper.join();
  EXPECT_LE(starved.seconds(), now_s() - begin_s - 0.15) << "however late it was woken";
}

}  // namespace
}  // namespace antichain
