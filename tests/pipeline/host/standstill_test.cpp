// A rank that stands still because it has no core is told from one that hangs by what the system counts, so
// no load of the machine changes these tests.
#include "pipeline/host/standstill.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "pipeline/host/seconds.h"
#include "pipeline/host/watchdog.h"
#include "tests/pipeline/host/without_core.h"

namespace antichain {
namespace {

using namespace std::chrono_literals;

class StandstillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/thread-self/schedstat"))
      GTEST_SKIP() << "this system does not count how long a thread had no core";
  }
};

TEST_F(StandstillTest, AThreadWithoutACoreIsCountedAlsoWhileItWaits) {
  const double begin_s = now_s();
  StarvedThreads starved(::getpid());
  const StarvedThread thread;
  while (starved.seconds() < 0.3) {
    std::this_thread::sleep_for(25ms);
    starved.look();
  }
  EXPECT_LE(starved.seconds(), now_s() - begin_s);
}

TEST_F(StandstillTest, WhoSleepsHasNoNeedOfACore) {
  const double begin_s = now_s();
  StarvedThreads starved(::getpid());
  std::atomic<bool> done{false};
  std::thread sleeper([&] {
    std::this_thread::sleep_for(150ms);
    done = true;
  });
  while (!done) {
    std::this_thread::sleep_for(25ms);
    starved.look();
  }
  sleeper.join();
  EXPECT_LE(starved.seconds(), now_s() - begin_s - 0.15) << "however late it was woken";
}

TEST_F(StandstillTest, ABeatBeginsAnew) {
  Progress rank;
  rank.limit(0.1);
  Standstill standstill(rank);
  const StarvedThread thread;
  double now = now_s(), starved_s = 0;
  while (starved_s < 0.2) {
    std::this_thread::sleep_for(25ms);
    starved_s = standstill.look(now = now_s()).starved_s;
  }
  rank.beat();
  EXPECT_EQ(standstill.look(now).starved_s, 0);
}

// Five times the limit without a beat, and nobody is blamed.
TEST_F(StandstillTest, TheWatchdogMindsNoRankThatHasNoCore) {
  Progress rank;
  rank.limit(0.2);
  rank.doing("computing");
  const StarvedThread thread;  // the rank's own, or one that works for it
  std::atomic<bool> reported{false};
  std::string message;
  Watchdog dog(states_of_threads({&rank}), [&](const Verdict& verdict) {
    message = verdict.message;
    reported = true;
  });
  std::this_thread::sleep_for(1s);
  EXPECT_FALSE(reported) << message;
  rank.finish();
}

TEST_F(StandstillTest, AnEndlessLoopIsFoundThoughItSharesItsCore) {
  Progress rank;
  rank.limit(0.2);
  rank.doing("turning in circles");
  std::atomic<int> reports{0};
  std::string message;
  Watchdog dog(states_of_threads({&rank}), [&](const Verdict& verdict) {
    message = verdict.message;
    ++reports;
  });
  const auto turn = [&] {
    share_a_core();
    while (reports == 0) {
    }
  };
  std::thread loop(turn), other(turn);
  loop.join();
  other.join();
  EXPECT_NE(message.find("has made no progress for 0."), std::string::npos) << message;
  EXPECT_NE(message.find("turning in circles"), std::string::npos) << message;
  rank.finish();
}

}  // namespace
}  // namespace antichain
