// Ranks copy into other ranks' devices, over a stand-in of the device (fake_device.h). The tests are about
// what every transport promises, by pairs that copy, pairs that go through host memory, and both; who is told
// what when a peer fails; and which pairs are agreed on.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "pipeline/transport/peer_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_device.h"
#include "tests/pipeline/transport/filled_tensor.h"
#include "tests/pipeline/transport/transport_checks.h"

namespace antichain::test {
namespace {

enum class Pairs { all, none, some };

std::unique_ptr<Transport> over_peers(JobTransport& job, Pairs which = Pairs::all) {
  auto peers = std::make_unique<FakePeers>();
  peers->refuses = [which, me = job.rank()](int peer) {
    return which == Pairs::none || (which == Pairs::some && me + peer == 1);
  };
  const PeerPairs pairs = find_pairs(job, *peers);
  return make_peer_transport(job, std::move(peers), std::make_unique<FakeCopies>(), pairs);
}

class PeerTransportKeeps : public ::testing::TestWithParam<std::tuple<TransportCheck, int, Pairs>> {};

TEST_P(PeerTransportKeeps, Promise) {
  const TransportCheck& check = std::get<0>(GetParam());
  const Pairs pairs = std::get<2>(GetParam());
  run_ranks(std::get<1>(GetParam()), [&](JobTransport& job) { check.run(*over_peers(job, pairs)); },
            {.watchdog_s = 30});
}

std::string name_of(const ::testing::TestParamInfo<PeerTransportKeeps::ParamType>& info) {
  constexpr const char* names[] = {"Directly", "Staged", "Mixed"};
  const auto& [check, ranks, pairs] = info.param;
  return std::string(check.name) + "On" + std::to_string(ranks) + names[int(pairs)];
}

INSTANTIATE_TEST_SUITE_P(
    Transport, PeerTransportKeeps,
    ::testing::Combine(::testing::ValuesIn(transport_checks().begin(), transport_checks().end()),
                       ::testing::Values(1, 2, 3), ::testing::Values(Pairs::all, Pairs::none, Pairs::some)),
    name_of);

// A receive may be posted before a question to all, and a flush does not wait for it.
TEST(PeerTransport, PostsReceivesBeforeTheOthersAreAsked) {
  for (const Pairs pairs : {Pairs::all, Pairs::none})
    run_ranks(2,
              [&](JobTransport& job) {
                const auto transport = over_peers(job, pairs);
                const int peer = 1 - job.rank();
                for (int round = 1; round < 4; ++round) {
                  const Tensor next = filled_tensor(4096, 0);
                  const auto later = transport->recv({3, 0}, peer, next);
                  transport->flush();  // nothing was sent, neither from here nor for `later`
                  EXPECT_EQ(job.broadcast("b", 0), "b");
                  job.barrier();
                  transport->send({3, 0}, peer, filled_tensor(4096, 10 * round));
                  transport->wait(later);
                  EXPECT_EQ(next.raw()[4095], std::byte(10 * round));
                  transport->flush();
                }
              },
              {.watchdog_s = 5});
}

// Equal names in both directions are different messages, and while a receive is waited for, sends go on.
TEST(PeerTransport, CopiesWhileItWaits) {
  run_ranks(2,
            [&](JobTransport& job) {
              const auto transport = over_peers(job);
              const int peer = 1 - job.rank();
              for (int round = 0; round < 20; ++round) {
                const Tensor in = filled_tensor(100, 0);
                transport->send({0, 0}, peer,
                                filled_tensor(100, 2 * round + job.rank()));  // before its buffer is shown
                if (round % 2 == job.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                transport->wait(transport->recv({0, 0}, peer, in));
                EXPECT_EQ(in.raw()[99], std::byte(2 * round + peer));
              }
              transport->flush();
            },
            {.watchdog_s = 5});
}

// The watchdog's sentence names who hangs, and what the others wait for: a tensor, its delivery, a common
// point.
TEST(PeerTransportDeathTest, WhoWaitsSaysForWhat) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [](int what) {
    run_ranks(2,
              [&](JobTransport& job) {
                const auto transport = over_peers(job);
                transport->name_messages([](MessageKey key, int, int) {
                  return "gradient of node conv" + std::to_string(key.channel) + ", micro-batch " +
                         std::to_string(key.microbatch);
                });
                job.activity().doing("0B3");
                while (job.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
                if (what == 0) transport->wait(transport->recv({4, 2}, 1, filled_tensor(8, 0)));
                if (what == 1) transport->send({4, 2}, 1, filled_tensor(8, 0)), transport->flush();
                // 2: the end of the transport waits for the other ranks
              },
              {.watchdog_s = 1});
  };
  const char* waits[] = {
      "rank 0 .*waits for the gradient of node conv4, micro-batch 2 from rank 1",
      "rank 0 .*waits for the delivery of the gradient of node conv4, micro-batch 2 to rank 1",
      "rank 0 .*waits for the other ranks that have not come to a common point"};
  for (int what = 0; what < 3; ++what)
    EXPECT_EXIT(job(what), ::testing::ExitedWithCode(int(ExitCode::watchdog)),
                std::string("rank 1 .*has made no progress.*\n.*") + waits[what]);
}

// Whatever the others wait for, they hear of it and end.
TEST(PeerTransport, AnErrorOfOneRankEndsTheOthers) {
  for (int what = 0; what < 3; ++what)
    expect_error(
        [&] {
          run_ranks(3,
                    [&](JobTransport& job) {
                      const auto transport = over_peers(job);
                      if (job.rank() == 1) throw Error("rank 1 has had enough", "", ExitCode::failure);
                      if (what == 0) transport->wait(transport->recv({4, 2}, 1, filled_tensor(8, 0)));
                      if (what == 1) transport->send({4, 2}, 1, filled_tensor(8, 0)), transport->flush();
                      if (what == 2) job.barrier();
                    },
                    {.watchdog_s = 30});
        },
        {"rank 1 has had enough"});
}

TEST(PeerPairs, AreOfOneHostAndCanBothWays) {
  const PeerPairs all({"a", "a", "b", "b"},
                      {{"", "", "", ""}, {"", "", "", ""}, {"", "", "", ""}, {"", "", "", ""}});
  EXPECT_TRUE(all.direct(0, 1) && all.direct(1, 0) && all.direct(3, 2));
  EXPECT_FALSE(all.direct(0, 2) || all.direct(3, 1) || all.direct(2, 2));
  EXPECT_FALSE(all.one_host() || all.all());
  EXPECT_TRUE(PeerPairs({"a", "a"}, {{"", ""}, {"", ""}}).all());
  EXPECT_EQ(all.exception(), "");
  const PeerPairs some({"a", "a", "a"}, {{"", "no", ""}, {"", "", "never"}, {"", "", ""}});
  EXPECT_TRUE(some.direct(0, 2) && some.any() && some.one_host());
  EXPECT_FALSE(some.direct(0, 1) || some.direct(1, 0) || some.direct(1, 2));
  EXPECT_EQ(some.exception(), "rank 0 on a can't write to rank 1's device (no), and so with 1 more pair");
  const PeerPairs none({"a", "a"}, {{"", ""}, {"no", ""}});
  EXPECT_FALSE(none.any());
  EXPECT_EQ(none.exception(), "rank 1 on a can't write to rank 0's device (no)");
}

}  // namespace
}  // namespace antichain::test
