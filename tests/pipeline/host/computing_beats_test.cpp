// Computing without steps is progress for the watchdog; waiting is not.
#include "pipeline/host/computing_beats.h"

#include <gtest/gtest.h>

#include <chrono>

#include "pipeline/host/seconds.h"
#include "pipeline/host/watchdog.h"

namespace antichain {
namespace {

using namespace std::chrono_literals;

// Five times the limit.
TEST(ComputingBeats, TheWatchdogMindsNoLongSearch) {
  Progress rank;
  rank.limit(0.2);
  rank.doing("planning");
  std::atomic<bool> reported{false};
  std::string message;
  Watchdog dog(states_of_threads({&rank}), [&](const Verdict& verdict) {
    message = verdict.message;
    reported = true;
  });
  {
    const ComputingBeats beats(rank);
    for (const double end_s = now_s() + 1; now_s() < end_s;) {
    }
  }
  EXPECT_FALSE(reported) << message;
  rank.finish();
}

TEST(ComputingBeats, WhoSleepsIsFoundAllTheSame) {
  Progress rank;
  rank.limit(0.2);
  rank.doing("planning");
  std::atomic<bool> reported{false};
  Watchdog dog(states_of_threads({&rank}), [&](const Verdict&) { reported = true; });
  const ComputingBeats beats(rank);
  while (!reported) std::this_thread::sleep_for(50ms);
  rank.finish();
}

}  // namespace
}  // namespace antichain
