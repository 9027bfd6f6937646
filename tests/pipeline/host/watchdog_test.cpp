// The watchdog is tested by its decision as a table of situations, by its clock, and by a hung thread that
// ends the program.
#include "pipeline/host/watchdog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "framework/error.h"
#include "pipeline/host/seconds.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/pipeline/host/without_core.h"

namespace antichain {
namespace {

RankView view(double still_s, double limit_s = 10) {
  RankView v{.still_s = still_s};
  v.state.limit_s = limit_s;
  return v;
}
RankView computing(double still_s, const char* action = "0F3") {
  RankView v = view(still_s);
  std::strcpy(v.state.action.data(), action);
  return v;
}
RankView writing(double still_s) {
  RankView v = computing(still_s, "writing the checkpoint of step 4 to run");
  v.state.patience_s = 100;
  return v;
}
RankView waiting(double still_s, int peer, const char* text = "") {
  RankView v = view(still_s);
  v.state.waiting_for = peer;
  std::strcpy(v.state.waiting.data(), text);
  return v;
}
RankView starving(double still_s, double starved_s) {
  RankView v = computing(still_s);
  v.state.starved_s = starved_s;
  return v;
}
RankView silent(double unheard_s) {
  RankView v = computing(unheard_s);
  v.unheard_s = unheard_s;
  return v;
}
RankView waiting_for_a_disk(double still_s) {
  RankView v = waiting(still_s, RankState::anybody);
  v.state.patience_s = 100;
  return v;
}
RankView finished(double still_s = 1000) {
  RankView v = view(still_s);
  v.unheard_s = 1000;  // it may have said good-bye long ago
  v.state.finished = 1;
  return v;
}

struct Situation {
  const char* name;
  std::vector<RankView> ranks;
  bool stuck;
  std::vector<std::string> says, does_not_say;
  int speaker = 0;
};

class WatchdogJudges : public ::testing::TestWithParam<Situation> {};

TEST_P(WatchdogJudges, Situation) {
  const Situation& s = GetParam();
  const Verdict verdict = judge(s.ranks);
  EXPECT_EQ(verdict.stuck, s.stuck) << verdict.message;
  if (s.stuck) {
    EXPECT_EQ(verdict.speaker, s.speaker);
  }
  for (const auto& words : s.says)
    EXPECT_NE(verdict.message.find(words), std::string::npos) << verdict.message;
  for (const auto& words : s.does_not_say)
    EXPECT_EQ(verdict.message.find(words), std::string::npos) << verdict.message;
}

std::vector<Situation> situations() {
  RankView elsewhere = computing(12);
  elsewhere.host = "node7";
  RankView unlimited = computing(1e6);
  unlimited.state.limit_s = 0;
  RankView silent_waiter = waiting(12, 0);
  silent_waiter.unheard_s = 12;
  RankView told = waiting(0.1, 0);
  std::strcpy(told.state.action.data(), "1B2");
  std::strcpy(told.state.failure.data(), "NCCL: remote process exited");
  return {
      {"TheDeviceReportsAFailure",
       {computing(1), told},
       true,
       {"rank 1 was told by its device: NCCL: remote process exited: its last action was \"1B2\""},
       {"rank 0"}},
      {"AllCompute", {computing(1), computing(9.9)}, false},
      {"WaitsForASlowButMovingRank", {waiting(100, 1), computing(3)}, false},
      {"OneHangsTheOtherWaits",
       {waiting(12, 1, "gradient of node a, micro-batch 2 from rank 1"), computing(11, "1B2")},
       true,
       {"rank 1 has made no progress for 11.0 s (limit 10 s)", "its last action was \"1B2\"",
        "rank 0 waits for the gradient of node a, micro-batch 2 from rank 1"},
       {"rank 0 has"}},
      {"HangsBeforeItsFirstAction", {computing(11, "")}, true, {"rank 0", "before its first action"}},
      {"NamesTheHost", {waiting(12, 1), elsewhere}, true, {"rank 1 on node7"}, {"rank 0 on"}},
      {"SilentRankIsNamed", {waiting(12, 1), silent(11)}, true, {"rank 1 has not been heard from", "11.0 s"}},
      {"SilentRankThatLastWaitedIsNamed",
       {computing(1), silent_waiter},
       true,
       {"rank 1 has not been heard from"}},
      {"LowestAudibleRankSpeaks",
       {silent(11), silent(12), waiting(12, 0)},
       true,
       {"rank 0", "rank 1"},
       {},
       2},
      {"TwoHang", {computing(11), computing(12), waiting(11, 0)}, true, {"rank 0 has", "\nrank 1 has"}},
      {"Deadlock",
       {waiting(11, 1), waiting(12, 0)},
       true,
       {"deadlock", "rank 0 waits for rank 1", "rank 1 waits for rank 0"}},
      {"DeadlockNotYetSure", {waiting(11, 1), waiting(9, 0)}, false},
      {"WaitsForARankThatFinished",
       {finished(), waiting(11, 0)},
       true,
       {"deadlock", "rank 1 waits for rank 0"}},
      {"AWaitForARankThatHasJustFinishedMayBeOver", {finished(0.1), waiting(11, 0)}, false},
      {"AWaitForADiskIsNoDeadlock", {waiting(12, 1), waiting_for_a_disk(50)}, false},
      {"ADiskThatNeverAnswersEndsTheJob", {waiting(112, 1), waiting_for_a_disk(111)}, true, {"deadlock"}},
      {"AllFinished", {finished(), finished()}, false},
      {"SomeFinishedOthersCompute", {finished(), computing(2)}, false},
      {"FinishedRanksHideNoHang", {finished(), computing(11)}, true, {"rank 1 has made no progress"}},
      {"WaitsForEverybody",
       {waiting(11, RankState::anybody), computing(11)},
       true,
       {"rank 0 waits for the other"}},
      {"WithoutACoreForLongerThanTheLimit", {starving(3, 40), waiting(12, 0)}, false},
      {"HangsAfterItHadNoCore",
       {starving(11, 40), waiting(12, 0)},
       true,
       {"rank 0 has made no progress for 11.0 s (limit 10 s), besides 40.0 s without a core: its last"}},
      {"ADiskThatWorksIsNoHang", {waiting(109, 1), writing(109)}, false},
      {"ADiskThatNeverEnds",
       {waiting(111, 1), writing(111)},
       true,
       {"rank 1 has made no progress for 111.0 s (limit 10 s, and 100 s while a disk works)", "to run"}},
      {"NoLimit", {unlimited, waiting(1e6, 0)}, false},
  };
}

INSTANTIATE_TEST_SUITE_P(Table, WatchdogJudges, ::testing::ValuesIn(situations()),
                         [](const auto& info) { return info.param.name; });

TEST(WatchdogJudge, ListsEightWaitingRanksAtMost) {
  std::vector<RankView> ranks(30, waiting(11, 0));
  ranks[0] = computing(11);
  const std::string message = judge(ranks).message;
  EXPECT_NE(message.find("and 21 more ranks wait"), std::string::npos) << message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 9);
}

TEST(Progress, AWaitIsSeenAndItsTextOnlyWhenExplained) {
  Progress progress;
  progress.doing("forward");
  const uint64_t before = progress.read().beats;
  {
    Progress::Wait wait(progress, 3);
    EXPECT_EQ(progress.read().waiting_for, 3);
    EXPECT_STREQ(progress.read().waiting.data(), "");
    wait.explain("a tensor");
    EXPECT_STREQ(progress.read().waiting.data(), "a tensor");
  }
  EXPECT_FALSE(progress.read().is_waiting());
  EXPECT_GT(progress.read().beats, before);
  {
    Progress::Wait wait(progress, 1);
    EXPECT_STREQ(progress.read().waiting.data(), "");
  }
  EXPECT_STREQ(progress.read().action.data(), "forward");
}

TEST(Progress, ADiskHasItsTime) {
  Progress progress;
  {
    const Progress::Disk outer(progress, "writing a checkpoint");
    { const Progress::Disk inner(progress, "syncing"); }
    EXPECT_EQ(progress.read().patience_s, Progress::disk_patience_s);
    EXPECT_STREQ(progress.read().action.data(), "syncing");
  }
  EXPECT_EQ(progress.read().patience_s, 0);
}

TEST(SharedText, LongTextsAreCutAndReadWholeWhileTheyChange) {
  SharedText text;
  const std::string a(500, 'a'), b(500, 'b');
  text.write(a);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    // A pause now and then, or a reader as slow as the writer would hardly ever find the text at rest.
    for (int i = 0; !stop; ++i) text.write(i % 2 ? a : b), i % 8 ? void() : std::this_thread::yield();
  });
  int whole = 0, torn = 0, short_texts = 0;
  for (SharedText::Bytes bytes; whole < 20'000;) {
    if (!text.try_read(bytes)) continue;
    const std::string read = bytes.data();
    ++whole;
    short_texts += read.size() != 127;
    torn += read.find_first_not_of(read[0]) != std::string::npos;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(short_texts, 0);
  EXPECT_EQ(torn, 0);  // without the version count about every second text would be
}

using namespace std::chrono_literals;

void sleep_while(const std::function<bool()>& condition) {
  while (condition()) std::this_thread::sleep_for(1ms);
}

// A watchdog of some ranks, and what it has reported.
struct Dog {
  explicit Dog(std::vector<const Progress*> ranks)
      : watchdog(states_of_threads(std::move(ranks)), [this](const Verdict& verdict) {
          message = verdict.message;
          ++reports;
        }) {}

  std::atomic<int> reports{0};
  std::string message;
  Watchdog watchdog;
};

// A rank of this limit that a watchdog watches from its first action on.
struct Watched {
  struct Rank : Progress {
    explicit Rank(std::string_view action) { limit(0.2), doing(action); }
  };
  explicit Watched(std::string_view action) : rank(action) {}
  ~Watched() { rank.finish(); }

  Rank rank;
  Dog dog{{&rank}};
};

TEST(Watchdog, ReportsOnceWithinATwentiethOfTheLimit) {
  Progress mine;
  mine.limit(0.5);
  mine.doing("the last thing");
  const auto start = std::chrono::steady_clock::now();
  const Dog dog({&mine});
  sleep_while([&] { return dog.reports == 0; });
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, 500ms);
  // A look comes every 25 ms and counts as 50 ms at most, however late it is.
  EXPECT_TRUE(dog.message.find("for 0.5 s") != std::string::npos ||
              dog.message.find("for 0.6 s") != std::string::npos)
      << dog.message;
  EXPECT_NE(dog.message.find("the last thing"), std::string::npos);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(dog.reports, 1);
}

TEST(Watchdog, IsQuietWhileThereAreBeatsAndWhenTheLimitIsOff) {
  Progress moving, unlimited;
  moving.limit(0.4);
  const Dog dog({&moving, &unlimited});
  for (int i = 0; i < 60; ++i) {
    moving.beat();
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(dog.reports, 0);
}

TEST(Computing, TheWatchdogMindsNoLongSearch) {
  Watched one("planning");
  {
    const Progress::Computing computing(one.rank);
    for (const double end_s = now_s() + 1; now_s() < end_s;) {  // five times the limit
    }
  }
  EXPECT_EQ(one.dog.reports, 0) << one.dog.message;
}

TEST(Computing, WhoSleepsIsFoundAllTheSame) {
  Watched one("planning");
  const Progress::Computing computing(one.rank);
  while (one.dog.reports == 0) std::this_thread::sleep_for(50ms);  // waking up takes time on a core, too
}

TEST(Computing, ItsEndIsABeat) {
  Progress rank;
  const uint64_t before = rank.read().beats;
  { const Progress::Computing computing(rank); }
  EXPECT_GT(rank.read().beats, before);
  EXPECT_EQ(rank.read().beats, rank.read().beats);
}

// A rank that stands still because it has no core is told from one that hangs by what the system counts, so
// no load of the machine changes these tests.
class StandstillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/thread-self/schedstat"))
      GTEST_SKIP() << "this system does not count how long a thread had no core";
  }
};

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
  const StarvedThread thread;  // the rank's own, or one that works for it
  Watched one("computing");
  std::this_thread::sleep_for(1s);
  EXPECT_EQ(one.dog.reports, 0) << one.dog.message;
}

TEST_F(StandstillTest, AnEndlessLoopIsFoundThoughItSharesItsCore) {
  Watched one("turning in circles");
  const auto turn = [&] {
    share_a_core();
    while (one.dog.reports == 0) {
    }
  };
  std::thread loop(turn), other(turn);
  loop.join();
  other.join();
  EXPECT_NE(one.dog.message.find("has made no progress for 0."), std::string::npos) << one.dog.message;
  EXPECT_NE(one.dog.message.find("turning in circles"), std::string::npos) << one.dog.message;
}

TEST(WatchdogDeathTest, AHungThreadEndsTheProgramAndIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    run_ranks(3,
              [](JobTransport& t) {
                t.activity().doing("multiplying");
                if (t.rank() == 1)
                  for (;;) std::this_thread::sleep_for(1h);
                t.wait(t.recv({4, 2}, 1, Tensor::host({{8}, DType::u8})));
              },
              {.watchdog_s = 0.5});
  };
  EXPECT_EXIT(
      job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)),
      "rank 1 .*no progress.*multiplying(.|\n)*rank 0 waits for the message of channel 4, micro-batch 2 from "
      "rank 1(.|\n)*rank 2 waits");
}

TEST(WatchdogDeathTest, ADeadlockOfThreadsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    run_ranks(2,
              [](JobTransport& t) {
                t.wait(t.recv({0, 0}, 1 - t.rank(), Tensor::host({{8}, DType::u8})));
              },
              {.watchdog_s = 0.5});
  };
  EXPECT_EXIT(job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)), "deadlock");
}

}  // namespace
}  // namespace antichain
