// The two transports for devices, over stand-ins of their streams, keep what every transport promises, and
// training over them gives the bits of one rank. What a real device adds is not tested here.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "pipeline/schedule/policy.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_device.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/transport/filled_tensor.h"
#include "tests/pipeline/transport/transport_checks.h"

namespace antichain::test {
namespace {

class StagedTransportKeeps : public ::testing::TestWithParam<std::tuple<TransportCheck, int>> {};

TEST_P(StagedTransportKeeps, Promise) {
  const TransportCheck& check = std::get<0>(GetParam());
  run_ranks(
      std::get<1>(GetParam()),
      [&](JobTransport& job) { check.run(*make_staged_transport(job, std::make_unique<FakeCopies>())); },
      {.watchdog_s = 30});
}

INSTANTIATE_TEST_SUITE_P(Transport, StagedTransportKeeps,
                         ::testing::Combine(::testing::ValuesIn(transport_checks().begin(),
                                                                transport_checks().end()),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "On" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(StagedTransport, UsesItsHostBuffersAgain) {
  auto copies = std::make_unique<FakeCopies>();
  const FakeCopies& counted = *copies;
  int after_two = 0;
  run_ranks(1, [&](JobTransport& job) {
    const auto staged = make_staged_transport(job, std::move(copies));
    for (int round = 0; round < 20; ++round) {
      const Tensor in = filled_tensor(4096, 0);
      const auto ticket = staged->recv({0, 0}, 0, in);
      staged->send({0, 0}, 0, filled_tensor(4096, round));
      staged->wait(ticket);
      staged->flush();
      EXPECT_EQ(in.raw()[4095], std::byte(round));
      if (round == 1) after_two = counted.page_locked_buffers();
    }
    EXPECT_EQ(counted.page_locked_buffers(), after_two);
  });
  // Two a round, and its receive's may still be on its way home when the next one begins.
  EXPECT_LE(after_two, 4);
}

// A flush gives the others what they may be waiting for, so the job can be asked something then.
TEST(StagedTransport, HandsOverWhenItFlushes) {
  run_ranks(2,
            [&](JobTransport& job) {
              const auto staged = make_staged_transport(job, std::make_unique<FakeCopies>());
              for (int question = 0; question < 3; ++question) {
                const Tensor in = filled_tensor(4096, 0);
                if (job.rank() == 0)
                  staged->send({0, 0}, 1, filled_tensor(4096, question + 1));
                else
                  staged->wait(staged->recv({0, 0}, 0, in));
                staged->flush();
                std::string said = "a";
                size_t heard = 0;
                if (question == 0) job.barrier();
                if (question == 1) said = job.broadcast("b", 0);
                if (question == 2) heard = job.gather("c").size();
                EXPECT_EQ(said, question == 1 ? "b" : "a");
                EXPECT_EQ(heard, question == 2 && job.rank() == 0 ? 2u : 0u);
                EXPECT_EQ(in.raw()[4095], std::byte(job.rank() == 1 ? question + 1 : 0));
              }
            },
            {.watchdog_s = 5});
}

// A receive may be posted before a question to all, and a flush does not wait for it.
TEST(StagedTransport, PostsReceivesBeforeTheOthersAreAsked) {
  run_ranks(2,
            [](JobTransport& job) {
              const auto staged = make_staged_transport(job, std::make_unique<FakeCopies>());
              const int peer = 1 - job.rank();
              for (int round = 1; round < 4; ++round) {
                const Tensor next = filled_tensor(4096, 0);
                const auto later = staged->recv({3, 0}, peer, next);
                staged->flush();  // nothing was sent, neither from here nor for `later`
                EXPECT_EQ(job.broadcast("b", 0), "b");
                job.barrier();
                staged->send({3, 0}, peer, filled_tensor(4096, 10 * round));
                staged->wait(later);
                EXPECT_EQ(next.raw()[4095], std::byte(10 * round));
                staged->flush();
              }
            },
            {.watchdog_s = 5});
}

TEST(StagedTransport, TrainsToTheBitsOfOneRank) {
  TrainingCase c{.steps = 3, .epoch = true};
  const TrainingRun one = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  c.over = [](JobTransport& job, const Context&) {
    return make_staged_transport(job, std::make_unique<FakeCopies>());
  };
  for (const int ranks : {2, 4})
    expect_same(train_on_threads(c, ranks, at_random(2), by_policy(Policy::one_f_one_b)), one,
                std::to_string(ranks) + " ranks");
}

// Random cuts of a network with skips; training and evaluation take turns, so both orders are followed. The
// replicas of a stage tell each other what they learned in groups of messages.
TEST(OrderedTransport, TrainsToTheBitsOfThreads) {
  for (const std::vector<int>& replicas :
       {std::vector<int>{1, 1}, {1, 1, 1, 1}, {3}, {2, 1}, {2, 2}, {1, 3, 2}})
    for (const Policy& policy : {Policy::one_f_one_b, Policy::gpipe}) {
      const int ranks = std::accumulate(replicas.begin(), replicas.end(), 0);
      const bool sums = ranks > int(replicas.size());
      TrainingCase c{.microbatches = 5, .steps = 2, .epoch = ranks < 5};
      const MakePlan plan = [&](const Profile& profile, int) {
        return replicated(at_random(5)(profile, int(replicas.size())), replicas);
      };
      const TrainingRun threads = train_on_threads(c, ranks, plan, by_policy(policy));
      for (const bool host_blocks : {true, false}) {
        Rendezvous rendezvous(ranks);
        c.over = [&](JobTransport& job, const Context&) {
          return make_ordered_transport(job,
                                        std::make_unique<FakeMessages>(rendezvous, job.rank(), host_blocks));
        };
        expect_same(train_on_threads(c, ranks, plan, by_policy(policy)), threads,
                    std::to_string(ranks) + " ranks");
        const auto groups = std::ranges::count_if(rendezvous.calls[1], [](const std::string& call) {
          return call.find(", ") != std::string::npos;
        });
        EXPECT_GE(groups, !sums ? 0 : ranks == 6 ? 4 : 2);
        EXPECT_GE(rendezvous.calls[0].size(), 4u);
      }
    }
}

// A turn that is ready early waits for its predecessors.
TEST(OrderedTransport, IssuesInTheOrderHoweverItIsCalled) {
  Rendezvous rendezvous(2);
  run_ranks(2,
            [&](JobTransport& job) {
              const auto ordered =
                  make_ordered_transport(job, std::make_unique<FakeMessages>(rendezvous, job.rank(), false));
              const int peer = 1 - job.rank();
              const std::vector<Turn> turns =
                  job.rank() == 0 ? std::vector<Turn>{{.sends = true, .key = {0, 0}, .peer = 1},
                                                      {.sends = false, .key = {1, 0}, .peer = 1},
                                                      {.sends = true, .key = {0, 1}, .peer = 1}}
                                  : std::vector<Turn>{{.sends = false, .key = {0, 0}, .peer = 0},
                                                      {.sends = true, .key = {1, 0}, .peer = 0},
                                                      {.sends = false, .key = {0, 1}, .peer = 0}};
              for (int step = 0; step < 3; ++step) {
                ordered->begin_step(turns);
                if (job.rank() == 0) {
                  const Tensor in = filled_tensor(30, 0);
                  const auto ticket = ordered->recv({1, 0}, peer, in);  // before the send that goes first
                  EXPECT_FALSE(ordered->arrived(ticket));
                  ordered->send({0, 1}, peer, filled_tensor(20, step + 2));
                  EXPECT_EQ(rendezvous.calls[0].size(), size_t(3 * step));
                  ordered->send({0, 0}, peer, filled_tensor(10, step + 1));
                  ordered->wait(ticket);
                  EXPECT_EQ(in.raw()[29], std::byte(step + 3));
                } else {
                  const Tensor first = filled_tensor(10, 0), second = filled_tensor(20, 0);
                  const auto a = ordered->recv({0, 0}, peer, first), b = ordered->recv({0, 1}, peer, second);
                  ordered->send({1, 0}, peer, filled_tensor(30, step + 3));
                  ordered->wait(b), ordered->wait(a);
                  EXPECT_EQ(first.raw()[9], std::byte(step + 1));
                  EXPECT_EQ(second.raw()[19], std::byte(step + 2));
                }
                ordered->flush();
              }
            },
            {.watchdog_s = 30});
  EXPECT_EQ((std::vector<std::string>(rendezvous.calls[0].begin(), rendezvous.calls[0].begin() + 3)),
            (std::vector<std::string>{"send 10 to 1", "recv 30 from 1", "send 20 to 1"}));
}

TEST(OrderedTransport, RefusesWhatIsNotInTheOrder) {
  Rendezvous rendezvous(2);
  const auto body = [&](JobTransport& job) {
    const auto ordered =
        make_ordered_transport(job, std::make_unique<FakeMessages>(rendezvous, job.rank(), false));
    const std::vector<Turn> turns = {{.sends = true, .key = {0, 0}, .peer = 1}};
    if (job.rank() == 0) ordered->begin_step(turns);
    if (job.rank() == 0) ordered->send({0, 1}, 1, filled_tensor(8, 1));
  };
  expect_error([&] { run_ranks(2, body); }, {"channel 0, micro-batch 1", "to rank 1", "order of messages"});
}

// The device's own report ends the job through the watchdog, which names rank and action.
TEST(OrderedTransportDeathTest, AFailureOfTheDeviceEndsTheJob) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    Rendezvous rendezvous(2);
    run_ranks(2,
              [&](JobTransport& job) {
                auto messages = std::make_unique<FakeMessages>(rendezvous, job.rank(), false);
                if (job.rank() == 1) messages->fails_with = "remote process exited";
                const auto ordered = make_ordered_transport(job, std::move(messages));
                job.activity().doing("0S3 sending");
                job.barrier();
                if (job.rank() == 1)
                  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
                job.barrier();
              },
              {.watchdog_s = 100});
  };
  EXPECT_EXIT(job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)),
              "rank 1 was told by its device: remote process exited: its last action was \"0S3 sending\"");
}

}  // namespace
}  // namespace antichain::test
