// Groups of messages go over the transport that has one order, on stand-ins of the devices' streams: all go
// at once, when the last one is ready, whatever stands around them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "framework/error.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_device.h"
#include "tests/pipeline/transport/filled_tensor.h"

namespace antichain::test {
namespace {

std::unique_ptr<Transport> over(Rendezvous& rendezvous, JobTransport& job, bool host_blocks) {
  return make_ordered_transport(job, std::make_unique<FakeMessages>(rendezvous, job.rank(), host_blocks));
}

// Adds messages from every rank to the next one, one after the other.
void add_singles(std::vector<Turn>& turns, int me, int ranks, int channel) {
  for (int from = 0; from < ranks; ++from) {
    const int to = (from + 1) % ranks;
    if (from == me) turns.push_back({.sends = true, .key = {channel, from}, .peer = to});
    if (to == me) turns.push_back({.sends = false, .key = {channel, from}, .peer = from});
  }
}
// Adds messages from every rank to every other one, at once.
void add_group(std::vector<Turn>& turns, int me, int ranks, int channel, int group) {
  for (const bool sends : {true, false})
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != me) turns.push_back({sends, {channel, sends ? me : peer}, peer, group});
}

// Returns two groups one behind the other, and one more, with messages around them.
std::vector<Turn> turns_of(int me, int ranks) {
  std::vector<Turn> turns;
  add_singles(turns, me, ranks, 0);
  add_group(turns, me, ranks, 1, 7);
  add_group(turns, me, ranks, 2, 8);
  add_singles(turns, me, ranks, 3);
  add_group(turns, me, ranks, 4, 9);
  add_singles(turns, me, ranks, 5);
  return turns;
}

int64_t bytes_of(const Turn& turn) { return 10 + 7 * turn.key.channel + turn.key.microbatch; }
int value_of(const Turn& turn, int me, int step) {
  const int from = turn.sends ? me : turn.peer, to = turn.sends ? turn.peer : me;
  return 1 + turn.key.channel + 6 * (from + 4 * (to + 4 * (step % 2)));
}

// A step in which the host makes the turns ready in any order.
void take(const std::vector<Turn>& turns, Transport& ordered, int step) {
  std::vector<size_t> any(turns.size());
  for (size_t i = 0; i < any.size(); ++i) any[i] = i;
  std::shuffle(any.begin(), any.end(), std::mt19937(unsigned(10 * step + ordered.rank())));
  ordered.begin_step(turns);
  std::vector<Tensor> received(turns.size());
  std::vector<Transport::Ticket> tickets(turns.size());
  for (const size_t i : any) {
    const Turn& turn = turns[i];
    if (turn.sends) {
      ordered.send(turn.key, turn.peer, filled_tensor(bytes_of(turn), value_of(turn, ordered.rank(), step)));
    } else {
      received[i] = filled_tensor(bytes_of(turn), 0);
      tickets[i] = ordered.recv(turn.key, turn.peer, received[i]);
    }
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].sends) continue;
    ordered.wait(tickets[i]);
    const std::byte expected = std::byte(value_of(turns[i], ordered.rank(), step));
    EXPECT_TRUE(std::all_of(received[i].raw(), received[i].raw() + received[i].bytes(),
                            [&](std::byte b) { return b == expected; }));
  }
  ordered.flush();
}

TEST(MessageGroups, GoToAllAndComeFromAllAmongOtherMessages) {
  for (const int ranks : {2, 3, 4})
    for (const bool host_blocks : {true, false}) {
      SCOPED_TRACE(ranks);
      Rendezvous rendezvous(ranks);
      run_ranks(ranks,
                [&](JobTransport& job) {
                  const auto ordered = over(rendezvous, job, host_blocks);
                  for (int step = 0; step < 3; ++step) take(turns_of(job.rank(), ranks), *ordered, step);
                },
                {.watchdog_s = 30});
      for (const auto& calls : rendezvous.calls) {
        std::vector<int>
            halves;  // of each exchange of a step: messages of the one stream, the groups among them
        for (size_t i = 0; i < calls.size() / 3; ++i)
          halves.push_back(1 + int(std::ranges::count(calls[i], ',')));
        const int all = 2 * (ranks - 1);
        EXPECT_EQ(halves, (std::vector<int>{1, 1, all, all, 1, 1, all, 1, 1}));
      }
    }
}

TEST(MessageGroups, WaitForTheirLastAndHoldUpWhatIsBehind) {
  Rendezvous rendezvous(2);
  run_ranks(2,
            [&](JobTransport& job) {
              const auto ordered = over(rendezvous, job, false);
              const int me = job.rank(), peer = 1 - me;
              const bool behind = me == 0;  // it sends
              const std::vector<Turn> turns = {{.sends = true, .key = {me, 0}, .peer = peer, .group = 1},
                                               {.sends = false, .key = {peer, 0}, .peer = peer, .group = 1},
                                               {behind, {2, 0}, peer}};
              ordered->begin_step(turns);
              const Tensor in = filled_tensor(20, 0), last = filled_tensor(30, 3);
              Transport::Ticket later = 0;
              if (me == 0) ordered->send({2, 0}, peer, last);
              if (me == 1) later = ordered->recv({2, 0}, peer, last);
              const auto ticket = ordered->recv({peer, 0}, peer, in);
              EXPECT_TRUE(rendezvous.calls[size_t(me)].empty());
              EXPECT_FALSE(ordered->arrived(ticket));
              ordered->send({me, 0}, peer, filled_tensor(20, 5 + me));
              EXPECT_EQ(rendezvous.calls[size_t(me)].size(), 2u);
              ordered->wait(ticket);
              EXPECT_EQ(in.raw()[19], std::byte(5 + peer));
              if (me == 1) ordered->wait(later);
              ordered->flush();
            },
            {.watchdog_s = 30});
  EXPECT_EQ(rendezvous.calls[0], (std::vector<std::string>{"send 20 to 1, recv 20 from 1", "send 30 to 1"}));
}

TEST(MessageGroups, HaveAMessageToItselfAsTwoTurns) {
  const auto alone = [](JobTransport& job) {
    Rendezvous rendezvous(1);
    const std::vector<Turn> turns = {{.sends = true, .key = {0, 0}, .peer = 0},
                                     {.sends = false, .key = {0, 0}, .peer = 0}};
    over(rendezvous, job, false)->begin_step(turns);
  };
  expect_error([&] { run_ranks(1, alone); }, {"a message to itself is two turns of a group"});
}

// The same messages one by one, sends first: each rank's send waits for a receive that is behind the other
// one's.
TEST(MessageGroupsDeathTest, SinglyTheyWaitForEachOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    Rendezvous rendezvous(2);
    run_ranks(2,
              [&](JobTransport& job) {
                const auto ordered = over(rendezvous, job, false);
                std::vector<Turn> turns;
                add_group(turns, job.rank(), 2, 0, 0);
                ordered->begin_step(turns);
                ordered->recv({0, 1 - job.rank()}, 1 - job.rank(), filled_tensor(8, 0));
                ordered->send({0, job.rank()}, 1 - job.rank(), filled_tensor(8, 1));
                ordered->flush();
              },
              {.watchdog_s = 3});
  };
  EXPECT_EXIT(job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)),
              "every rank waits for another one and none has made progress.*deadlock");
}

}  // namespace
}  // namespace antichain::test
