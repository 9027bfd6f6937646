// A table says which way tensors travel: what is tried, what becomes of it, and the sentence that says so.
#include "pipeline/transport/choose_way.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace antichain {
namespace {

WayFacts gpu(const char* host, const char* device, const char* messages = "NCCL 2.28.9") {
  return {
      .host = host, .device = device, .messages_by = messages, .no_messages = "no libnccl", .peers = true};
}
const WayFacts first = gpu("a", "GPU-1"), second = gpu("a", "GPU-2"), elsewhere = gpu("b", "GPU-1"),
               without = gpu("a", "GPU-2", ""), older = gpu("b", "GPU-2", "NCCL 2.20.5"),
               host_memory{.host = "a"};
WayFacts thread_of(WayFacts facts, const char* process) {
  facts.process = process;
  return facts;
}
WayFacts unshared(WayFacts facts) {
  facts.peers = false;
  return facts;
}

PeerPairs all_of(const std::vector<std::string>& hosts) {
  return {hosts, std::vector(hosts.size(), std::vector<std::string>(hosts.size()))};
}
PeerPairs second_cannot(std::vector<std::string> hosts) {
  std::vector why(hosts.size(), std::vector<std::string>(hosts.size()));
  why[1][0] = "no";
  return {std::move(hosts), why};
}

WayChoice chosen(const std::vector<WayFacts>& ranks, const PeerPairs* pairs = nullptr,
                 const std::string& failure = "", const char* asked = "auto") {
  const Ways ways = ways_to_try(asked, ranks);
  return choose_way(asked, ways, ways.copies ? pairs : nullptr, failure);
}

TEST(ChooseWay, LeavesHostMemoryAlone) {
  for (const char* asked : {"auto", "mpi"}) {
    EXPECT_EQ(chosen({host_memory, host_memory}, nullptr, "", asked).way, Way::as_it_is);
    EXPECT_EQ(chosen({host_memory, host_memory}, nullptr, "", asked).sentence, "");
    EXPECT_EQ(chosen({first}, nullptr, "", asked).sentence, "tensors stay where they are: one rank");
  }
  EXPECT_EQ(chosen({first}, nullptr, "", "ipc").way, Way::as_it_is);
}

// Within a host a copy takes no processor of the device, and needs no order.
TEST(ChooseWay, PrefersCopiesWithinAHost) {
  const PeerPairs pairs = all_of({"a", "a"});
  for (const auto& ranks : {std::vector{first, second}, {first, first}, {first, without}}) {
    const WayChoice choice = chosen(ranks, &pairs);
    EXPECT_EQ(choice.way, Way::copies);
    EXPECT_EQ(choice.sentence, "tensors are copied from GPU to GPU");
  }
  EXPECT_EQ(chosen({first, second}, &pairs, "", "ipc").sentence,
            "tensors are copied from GPU to GPU: --transport ipc");
}

TEST(ChooseWay, TakesMessagesForThePairsThatAreLeft) {
  const PeerPairs hosts = all_of({"a", "a", "b"}), odd = second_cannot({"a", "a", "a"});
  EXPECT_EQ(chosen({first, second, elsewhere}, &hosts).way, Way::copies_and_messages);
  EXPECT_EQ(chosen({first, second, elsewhere}, &hosts).sentence,
            "tensors are copied from GPU to GPU within a host and go by NCCL 2.28.9 between hosts");
  const WayFacts third = gpu("a", "GPU-3");
  EXPECT_EQ(chosen({first, second, third}, &odd).sentence,
            "tensors are copied from GPU to GPU; rank 1 on a can't write to rank 0's device (no): by NCCL "
            "2.28.9");
  const PeerPairs none = second_cannot({"a", "a"});
  EXPECT_EQ(chosen({first, second}, &none).way, Way::messages);
  EXPECT_EQ(chosen({first, second}, &none).sentence,
            "tensors travel from GPU to GPU by NCCL 2.28.9: rank 1 on a can't write to rank 0's device (no)");
  EXPECT_EQ(chosen({first, elsewhere}).sentence,
            "tensors travel from GPU to GPU by NCCL 2.28.9: no two ranks are on one host");
  EXPECT_EQ(chosen({unshared(first), unshared(second)}).way, Way::messages);
  EXPECT_EQ(chosen({first, second}, nullptr, "", "nccl").sentence,
            "tensors travel from GPU to GPU by NCCL 2.28.9: --transport nccl");
  EXPECT_EQ(chosen({first}, nullptr, "", "nccl").way, Way::messages);  // with itself
}

// What fails when it is tried is no end: the next way is taken, and the reason said.
TEST(ChooseWay, FallsBackToHostMemoryWithTheReason) {
  const PeerPairs hosts = all_of({"a", "a", "b"}), none = second_cannot({"a", "a"});
  const std::string failed = "rank 2 on b found NCCL unable: no route";
  EXPECT_EQ(chosen({first, second, elsewhere}, &hosts, failed).way, Way::copies);
  EXPECT_EQ(
      chosen({first, second, elsewhere}, &hosts, failed).sentence,
      "tensors are copied from GPU to GPU within a host and go through host memory between hosts: " + failed);
  EXPECT_EQ(chosen({first, elsewhere}, nullptr, failed).sentence,
            "tensors travel through host memory: " + failed + "; no two ranks are on one host");
  EXPECT_EQ(
      chosen({first, first}, &none).sentence,
      "tensors travel through host memory: ranks 0 and 1 on a share one GPU, which NCCL refuses; rank 1 "
      "on a can't write to rank 0's device (no)");
  EXPECT_EQ(
      chosen({first, older}).sentence,
      "tensors travel through host memory: rank 1 has NCCL 2.20.5, rank 0 NCCL 2.28.9; no two ranks are "
      "on one host");
  EXPECT_EQ(chosen({unshared(first), unshared(without)}).sentence,
            "tensors travel through host memory: rank 1 has no NCCL (no libnccl); rank 0's device can't be "
            "shared");
  EXPECT_EQ(chosen({first, host_memory}).sentence,
            "tensors travel through host memory: rank 1 computes in host memory");
  EXPECT_EQ(chosen({first, second}, nullptr, "", "mpi").sentence,
            "tensors travel through host memory: --transport mpi");
}

// A call of one thread may wait for the device of another, which waits for what that thread has yet to issue.
TEST(ChooseWay, ThreadsNeverGoByMessages) {
  const std::vector threads{thread_of(unshared(first), "one"), thread_of(unshared(second), "one")};
  EXPECT_EQ(chosen(threads).way, Way::staged);
  EXPECT_NE(chosen(threads).sentence.find("ranks 0 and 1 are threads of one process"), std::string::npos);
  expect_error([&] { chosen(threads, nullptr, "", "nccl"); },
               {"--transport nccl", "ranks 0 and 1 are threads of one process"});
  const std::vector processes{thread_of(unshared(first), "one"), thread_of(unshared(second), "two")};
  EXPECT_EQ(chosen(processes).way, Way::messages);
}

TEST(ChooseWay, RefusesWithTheReason) {
  const auto refused = [](const char* asked, const std::vector<WayFacts>& ranks, const char* why,
                          const PeerPairs* pairs = nullptr, const char* failure = "") {
    expect_error([&] { chosen(ranks, pairs, failure, asked); },
                 {"--transport", asked, why, "use --transport mpi"});
  };
  refused("nccl", {first, first}, "ranks 0 and 1 on a share one GPU");
  refused("nccl", {host_memory, host_memory}, "rank 0 computes in host memory");
  refused("nccl", {first, second}, "it failed", nullptr, "it failed");
  refused("ipc", {first, host_memory}, "rank 1 computes in host memory");
  refused("ipc", {first, unshared(second)}, "rank 1's device can't be shared");
  refused("ipc", {first, elsewhere}, "no two ranks are on one host");
  const PeerPairs none = second_cannot({"a", "a"});
  refused("ipc", {first, second}, "rank 1 on a can't write to rank 0's device (no)", &none);
}

}  // namespace
}  // namespace antichain
