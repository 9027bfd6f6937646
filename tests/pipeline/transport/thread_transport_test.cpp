// Ranks as threads keep what every transport promises, and end together when one fails.
#include "pipeline/transport/thread_transport.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/expect_error.h"
#include "tests/pipeline/transport/transport_checks.h"

namespace antichain::test {
namespace {

class ThreadTransportKeeps : public ::testing::TestWithParam<std::tuple<TransportCheck, int>> {};

TEST_P(ThreadTransportKeeps, Promise) {
  const auto& [check, ranks] = GetParam();
  run_ranks(ranks, check.run, {.watchdog_s = 30});  // a deadlock ends the test program instead of hanging it
}

INSTANTIATE_TEST_SUITE_P(Transport, ThreadTransportKeeps,
                         ::testing::Combine(::testing::ValuesIn(transport_checks().begin(),
                                                                transport_checks().end()),
                                            ::testing::Values(1, 2, 3, 4)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "On" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST(ThreadTransport, FirstOriginalErrorIsRethrownAndWakesThePeers) {
  std::atomic<int> woken{0};
  const auto body = [&](JobTransport& t) {
    if (t.rank() == 1) throw Error("rank 1 has had enough", "");
    try {
      t.wait(t.recv({0, 0}, 1, Tensor::host({{8}, DType::u8})));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::peer_failed);
      ++woken;
      throw;
    }
  };
  expect_error([&] { run_ranks(3, body, {.watchdog_s = 30}); }, {"rank 1 has had enough"});
  EXPECT_EQ(woken, 2);
}

TEST(ThreadTransport, AFailureWakesRanksInABarrierAndInAFlush) {
  const auto body = [](JobTransport& t) {
    if (t.rank() == 0) throw std::runtime_error("not even an Error");
    if (t.rank() == 1) t.barrier();
    t.send({0, 0}, 0, Tensor::host({{8}, DType::u8}));
    t.flush();
  };
  EXPECT_THROW(run_ranks(3, body, {.watchdog_s = 30}), std::runtime_error);
}

TEST(ThreadTransport, RefusesPeersThatAreNotThere) {
  const auto body = [](JobTransport& t) { t.send({0, 0}, 2, Tensor::host({{8}, DType::u8})); };
  expect_error([&] { run_ranks(2, body); }, {"addresses rank 2", "2 ranks"});
  expect_error([&] { run_ranks(0, body); }, {"at least one rank"});
}

// A message that comes while the receiver looks for it goes to the receive that was posted first. Any one
// round may go well.
TEST(ThreadTransport, MessagesOfOneKeyThatComeMeanwhileKeepTheirOrder) {
  constexpr int rounds = 20'000, messages = 4;
  int wrong = 0;
  run_ranks(2, [&](JobTransport& transport) {
    const auto number = [](int value) {
      const Tensor tensor = Tensor::host({{1}, DType::i32});
      *tensor.data<int32_t>() = value;
      return tensor;
    };
    for (int round = 0; round < rounds; ++round) {
      if (transport.rank() == 0) {
        for (int i = 0; i < messages; ++i) transport.send({0, 0}, 1, number(i));
        transport.flush();
        continue;
      }
      std::vector<Tensor> into;
      std::vector<Transport::Ticket> tickets;
      for (int i = 0; i < messages; ++i) {
        into.push_back(number(-1));
        tickets.push_back(transport.recv({0, 0}, 0, into.back()));
      }
      for (const Transport::Ticket ticket : tickets) transport.wait(ticket);
      for (int i = 0; i < messages; ++i) wrong += *into[size_t(i)].data<int32_t>() != i;
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace antichain::test
