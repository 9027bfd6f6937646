// A table says which way tensors travel, and the sentence that says so.
#include "pipeline/transport/choose_way.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace antichain {
namespace {

WayFacts gpu(const char* host, const char* device, const char* messages = "NCCL 2.28.9") {
  return {.host = host, .device = device, .messages_by = messages, .no_messages = "no libnccl"};
}
const WayFacts first = gpu("a", "GPU-1"), second = gpu("a", "GPU-2"), elsewhere = gpu("b", "GPU-1"),
               without = gpu("a", "GPU-2", ""), older = gpu("b", "GPU-2", "NCCL 2.20.5"),
               host_memory{.host = "a"};
WayFacts thread_of(WayFacts facts, const char* process) {
  facts.process = process;
  return facts;
}

TEST(ChooseWay, LeavesHostMemoryAlone) {
  for (const char* asked : {"auto", "mpi"}) {
    EXPECT_EQ(choose_way(asked, {host_memory, host_memory}).way, Way::as_it_is);
    EXPECT_EQ(choose_way(asked, {host_memory, host_memory}).sentence, "");
    EXPECT_EQ(choose_way(asked, {first}).way, Way::as_it_is);
    EXPECT_EQ(choose_way(asked, {first}).sentence, "tensors stay where they are: one rank");
  }
}

TEST(ChooseWay, TakesMessagesWhereEveryRankCan) {
  for (const auto& ranks : {std::vector{first, second}, {first, elsewhere}})
    for (const char* asked : {"auto", "nccl"}) {
      EXPECT_EQ(choose_way(asked, ranks).way, Way::messages);
      EXPECT_EQ(choose_way(asked, ranks).sentence, "tensors travel from GPU to GPU by NCCL 2.28.9");
    }
  EXPECT_EQ(choose_way("nccl", {first}).way, Way::messages);  // with itself
}

TEST(ChooseWay, FallsBackToHostMemoryWithTheReason) {
  const auto expect_staged = [](const WayChoice& choice, const std::string& why) {
    EXPECT_EQ(choice.way, Way::staged);
    EXPECT_EQ(choice.sentence, "tensors travel through host memory: " + why);
  };
  expect_staged(choose_way("auto", {first, first}), "ranks 0 and 1 on a share one GPU, which NCCL refuses");
  expect_staged(choose_way("auto", {first, older}), "rank 1 has NCCL 2.20.5, rank 0 NCCL 2.28.9");
  expect_staged(choose_way("auto", {first, without}), "rank 1 has no NCCL (no libnccl)");
  expect_staged(choose_way("auto", {first, host_memory}), "rank 1 computes in host memory");
  expect_staged(choose_way("mpi", {first, second}), "--transport mpi");
  // What fails when it is tried is no end.
  const std::string failed = "rank 2 on b found NCCL unable: no route";
  expect_staged(way_without_messages("auto", failed), failed);
}

// A call of one thread may wait for the device of another, which waits for what that thread has yet to issue.
TEST(ChooseWay, ThreadsNeverGoByMessages) {
  const std::vector threads{thread_of(first, "one"), thread_of(second, "one")};
  EXPECT_EQ(choose_way("auto", threads).way, Way::staged);
  EXPECT_NE(choose_way("auto", threads).sentence.find("ranks 0 and 1 are threads of one process"),
            std::string::npos);
  expect_error([&] { choose_way("nccl", threads); },
               {"--transport nccl", "ranks 0 and 1 are threads of one process"});
  EXPECT_EQ(choose_way("auto", {thread_of(first, "one"), thread_of(second, "two")}).way, Way::messages);
}

TEST(ChooseWay, RefusesWithTheReason) {
  const auto refused = [](const auto& choose, const char* why) {
    expect_error(choose, {"--transport nccl is asked for, but", why, "use --transport mpi"});
  };
  refused([] { choose_way("nccl", {first, first}); }, "ranks 0 and 1 on a share one GPU");
  refused([] { choose_way("nccl", {host_memory, host_memory}); }, "rank 0 computes in host memory");
  refused([] { way_without_messages("nccl", "it failed"); }, "it failed");
}

}  // namespace
}  // namespace antichain
