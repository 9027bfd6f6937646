// The code that calls NCCL, on stand-ins of CUDA and NCCL (fake_cuda.h): the host waits neither for launches
// nor for aborts, a rank that waits says so, messages wait for what they send and computing for messages, and
// what goes wrong is an error, never a delivery. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "framework/cuda/resources.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/solo_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/forgetful_streams.h"
#include "tests/pipeline/fakes/idle_gpu.h"
#include "tests/pipeline/transport/filled_tensor.h"
#include "tests/pipeline/transport/nccl_among.h"

namespace antichain::test {
namespace {

namespace fake = fake_cuda;

template <class Done>
bool comes(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return done();
}

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override { fake::reset(1); }
  void TearDown() override {
    fake::reset(1);
    EXPECT_EQ(fake::broken_rules(), std::vector<std::string>());
  }

  const IdleGpu gpu;
};

std::vector<MessageHalf> to_itself(MessageStream& nccl, const Tensor& from, const Tensor& to, int lane = 0) {
  return {{true, from, 0, nccl.computed(), lane}, {false, to, 0, nccl.computed(), lane}};
}

std::unique_ptr<Transport> over_connected_nccl(JobTransport& job, const Context& context) {
  auto messages = nccl_among(context, job);
  fake::forget_nccl_calls(job.rank());  // that connected them
  return make_ordered_transport(job, std::move(messages));
}

// One of two: the other one never comes.
class Deserted : public SoloTransport {
 public:
  int size() const override { return 2; }
};

TEST_F(Nccl, ConnectingHasADeadline) {
  const Context context(gpu);
  Deserted job;
  job.activity().limit(0.2);
  expect_error([&] { nccl_among(context, job); }, {"rank 0", "not all ranks connected in time"});
  EXPECT_TRUE(comes([] { return fake::aborted(0); }));
}

TEST_F(Nccl, AnAsynchronousErrorAbortsTheCommunicators) {
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = nccl_among(context, job);
  EXPECT_EQ(nccl->failure(), "");
  fake::fail(0);
  EXPECT_EQ(nccl->failure(), "NCCL: remote process exited");
  EXPECT_TRUE(comes([] { return fake::aborted(0); }));
  EXPECT_EQ(nccl->failure(), "NCCL: remote process exited");
  const MessageHalf send[] = {{true, filled_tensor(8, 0), 0, nccl->computed()}};
  expect_error([&] { nccl->exchange(send); }, {"rank 0 can't go on", "remote process exited"});
}

// Pairs are connected when the stream is made: amid a step the host would stand still for it.
TEST_F(Nccl, AllPairsAreConnectedInBothLanesBeforeTheFirstStep) {
  run_ranks(3, [&](JobTransport& job) {
    const Context context(gpu, 1, job.rank());
    const auto nccl = nccl_among(context, job);
    EXPECT_EQ(nccl->lanes(), 2);
    const std::string all = job.rank() == 0   ? "send 8 to 1, recv 8 from 1, send 8 to 2, recv 8 from 2"
                            : job.rank() == 1 ? "send 8 to 0, recv 8 from 0, send 8 to 2, recv 8 from 2"
                                              : "send 8 to 0, recv 8 from 0, send 8 to 1, recv 8 from 1";
    EXPECT_EQ(fake::nccl_calls(job.rank()), (std::vector<std::string>{all, all}));
    EXPECT_EQ(fake::nccl_groups(job.rank()), 1);
  });
}

// A rank that waits until NCCL has come to its peers is not to blame for what they do.
TEST_F(Nccl, WhoConnectsIsAWaitingRank) {
  std::atomic<const Progress*> first{nullptr};
  const auto body = [&](JobTransport& job) {
    const Context context(gpu, 1, job.rank());
    if (job.rank() == 0) first = &job.activity();
    job.barrier();
    if (job.rank() == 0) return void(nccl_among(context, job));
    job.broadcast("");  // then rank 0 comes to NCCL
    EXPECT_TRUE(comes([&] { return first.load()->read().is_waiting(); }));
    throw Error("rank 1 is late", "", ExitCode::failure);
  };
  expect_error([&] { run_ranks(2, body); }, {"rank 1 is late"});
}

// The launch is NCCL's own thread's. The host goes on meanwhile, and so does computing.
TEST_F(Nccl, TheHostDoesNotWaitForALaunch) {
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = nccl_among(context, job);
  fake::nccl({.launches_held = true});
  const Tensor in = filled_tensor(100, 0);
  const Moment end = nccl->exchange(to_itself(*nccl, filled_tensor(100, 7), in))[0];
  std::atomic<bool> computed{false};
  fake::launch(cuda::stream_of(context), [&] { computed = true; });
  EXPECT_TRUE(comes([&] { return computed.load(); }));
  EXPECT_FALSE(nccl->reached(end));
  EXPECT_EQ(in.raw()[99], std::byte(0));
  fake::nccl({});
  EXPECT_TRUE(comes([&] { return nccl->reached(end); }));
  EXPECT_EQ(in.raw()[99], std::byte(7));
}

// Computing after a message waits for what is launched later.
TEST_F(Nccl, ComputingWaitsForAMessageThatIsStillLaunched) {
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = nccl_among(context, job);
  const Tensor in = filled_tensor(100, 0);
  for (int round = 1; round < 50; ++round) {
    const Moment end =
        nccl->exchange(to_itself(*nccl, filled_tensor(100, round), in, round % 2))[size_t(round % 2)];
    nccl->compute_after(end);
    std::atomic<int> seen{-1};
    fake::launch(cuda::stream_of(context), [&] { seen = int(in.raw()[99]); });
    ASSERT_TRUE(comes([&] { return seen >= 0; }));
    ASSERT_EQ(seen, round);
  }
}

// After a flush what was sent is the sender's again. A step's own dependencies hide this wait. The receiver's
// device is held before it can take the message.
TEST_F(Nccl, WhatWasSentIsTheSendersAgainAfterAFlush) {
  const auto arrived = [&](Forgets forgets) {
    std::atomic<bool> overwritten{false};
    std::byte seen{};
    run_ranks(2, [&](JobTransport& job) {
      const Context context(gpu, 1, job.rank());
      CUstream_st* const computing = cuda::stream_of(context);
      const auto nccl =
          make_ordered_transport(job, std::make_unique<ForgetfulMessages>(nccl_among(context, job), forgets));
      const std::vector<Turn> turns = {{.sends = job.rank() == 0, .key = {0, 0}, .peer = 1 - job.rank()}};
      nccl->begin_step(turns);
      const Tensor tensor = filled_tensor(100, job.rank() == 0 ? 2 : 1);
      if (job.rank() == 0) {
        job.barrier();
        nccl->send({0, 0}, 1, tensor);
        nccl->flush();
        std::fill_n(tensor.raw(), 100, std::byte(3));
        overwritten = true;
      } else {
        fake::hold(computing);
        const auto ticket = nccl->recv({0, 0}, 0, tensor);
        job.barrier();
        // Only who forgets gets so far; the other one is left some time for it.
        const auto patience = std::chrono::milliseconds(forgets == Forgets::nothing ? 100 : 60'000);
        const auto end = std::chrono::steady_clock::now() + patience;
        while (!overwritten && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        fake::let_go(computing);
        nccl->wait(ticket);
        fake::drain();
        seen = tensor.raw()[99];
      }
      job.barrier();
    });
    return seen;
  };
  EXPECT_EQ(arrived(Forgets::nothing), std::byte(2));
  EXPECT_EQ(arrived(Forgets::delivery), std::byte(3));
}

// An aborted kernel returns, and the event behind it comes.
TEST_F(Nccl, NothingCountsAsDeliveredAfterAnAbort) {
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = make_ordered_transport(job, nccl_among(context, job));
  const std::vector<Turn> turns = {{.sends = true, .key = {0, 0}, .peer = 0, .group = 1},
                                   {.sends = false, .key = {0, 0}, .peer = 0, .group = 1}};
  nccl->begin_step(turns);
  fake::hold(cuda::stream_of(context));
  nccl->send({0, 0}, 0, filled_tensor(100, 7));
  const Tensor in = filled_tensor(100, 0);
  const auto ticket = nccl->recv({0, 0}, 0, in);
  fake::fail(0);
  job.activity().examine();  // as the watchdog does
  ASSERT_TRUE(comes([] { return fake::aborted(0); }));
  fake::let_go(cuda::stream_of(context));
  expect_error([&] { nccl->wait(ticket); }, {"rank 0 can't go on", "remote process exited"});
  expect_error([&] { nccl->flush(); }, {"remote process exited"});
}

// An abort that waits for all ranks' holds up neither the watchdog, nor the rank, nor its sentence.
TEST_F(Nccl, NobodyWaitsForAnAbort) {
  const auto body = [&](JobTransport& job) {
    const Context context(gpu, 1, job.rank());
    auto messages = nccl_among(context, job);
    const auto nccl = make_ordered_transport(job, std::move(messages));
    const std::vector<Turn> turns = {{.sends = false, .key = {0, 0}, .peer = 1 - job.rank()}};
    nccl->begin_step(turns);
    nccl->recv({0, 0}, 1 - job.rank(), filled_tensor(100, 0));
    fake::nccl({.aborts_wait_for_all = true});
    job.barrier();
    if (job.rank() == 1) {
      nccl->give_up();  // what it was to receive ends
      fake::drain();
      throw Error("rank 1 has had enough", "", ExitCode::failure);
    }
    job.barrier();
  };
  expect_error([&] { run_ranks(2, body); }, {"rank 1 has had enough"});
}

TEST_F(Nccl, TheWatchdogIsNotHeldUpByAnAbort) {
  run_ranks(2, [&](JobTransport& job) {
    const Context context(gpu, 1, job.rank());
    const auto nccl = nccl_among(context, job);
    fake::nccl({.aborts_wait_for_all = true});
    job.barrier();
    if (job.rank() == 1) {
      fake::fail(1);
      EXPECT_EQ(nccl->failure(), "NCCL: remote process exited");
      EXPECT_EQ(nccl->failure(), "NCCL: remote process exited");
    }
    job.barrier();
  });
}

// A message in one direction that has to wait does not hold up those of the other one.
TEST_F(Nccl, GradientsPassActivationsThatWait) {
  run_ranks(2,
            [&](JobTransport& job) {
              const Context context(gpu, 1, job.rank());
              const auto nccl = make_ordered_transport(job, nccl_among(context, job));
              fake::forget_nccl_calls(job.rank());
              const bool first = job.rank() == 0;
              const std::vector<Turn> turns = {{first, {0, 0}, 1 - job.rank()},
                                               {!first, {1, 0}, 1 - job.rank(), 0, 1}};
              nccl->begin_step(turns);
              const Tensor activation = filled_tensor(100, first ? 7 : 0),
                           gradient = filled_tensor(50, first ? 0 : 9);
              if (first) {
                // Ready out of turn, so that both go at once; what the activation is made of is still
                // computed.
                const auto ticket = nccl->recv({1, 0}, 1, gradient);
                fake::drain(cuda::stream_of(context));
                fake::hold(cuda::stream_of(context));
                fake::launch(cuda::stream_of(context), [] {});
                nccl->send({0, 0}, 1, activation);
                EXPECT_EQ(fake::nccl_groups(0), 1);
                EXPECT_TRUE(comes([&] { return nccl->arrived(ticket); }));
                EXPECT_EQ(gradient.raw()[49], std::byte(9));
                job.barrier();
                job.barrier();  // rank 1 looks between the two
                fake::let_go(cuda::stream_of(context));
              } else {
                const auto ticket = nccl->recv({0, 0}, 0, activation);
                nccl->send({1, 0}, 0, gradient);
                job.barrier();
                EXPECT_EQ(activation.raw()[99], std::byte(0));
                job.barrier();
                nccl->wait(ticket);
              }
              nccl->flush();
              EXPECT_EQ(activation.raw()[99], std::byte(7));
            },
            {.watchdog_s = 30});
}

// The device stands still where it is held, so whatever did not wait would be early every time.
TEST_F(Nccl, AGroupWaitsForComputingAndComputingForIt) {
  run_ranks(2,
            [&](JobTransport& job) {
              const Context context(gpu, 1, job.rank());
              const auto compute = cuda::stream_of(context);
              const auto nccl = over_connected_nccl(job, context);
              const int me = job.rank(), peer = 1 - me;
              // The receive is ready before what is sent is computed: the group waits for the later one.
              const std::vector<Turn> turns = {{.sends = false, .key = {peer, 0}, .peer = peer, .group = 1},
                                               {.sends = true, .key = {me, 0}, .peer = peer, .group = 1}};
              const Tensor in = gpu.tensor({{50}, DType::i32}), out = gpu.tensor({{50}, DType::i32});
              std::atomic<int> seen{-1};
              const auto step = [&](int value, auto&& meanwhile) {
                nccl->begin_step(turns);
                const auto ticket = nccl->recv({peer, 0}, peer, in);
                fake::launch(compute, [&, value] { std::fill_n(out.data<int>(), 50, value + me); });
                meanwhile();
                nccl->send({me, 0}, peer, out);
                nccl->wait(ticket);
                fake::launch(compute, [&] { seen = in.data<int>()[49]; });
              };
              const auto end = [&](int value) {
                nccl->flush();
                fake::drain(compute);
                EXPECT_EQ(seen, value + peer);
              };
              step(10, [] {});  // connects them
              end(10);

              job.barrier();
              fake::hold(compute);
              step(20, [] {});
              std::this_thread::sleep_for(std::chrono::milliseconds(30));
              EXPECT_EQ(in.data<int>()[49], 10 + peer) << "sent before it was computed";
              job.barrier();
              fake::let_go(compute);
              end(20);

              job.barrier();
              step(30, [&] {
                if (me == 1) job.barrier();
              });
              if (me == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(30));
                EXPECT_EQ(seen, 20 + peer) << "looked at before it came";
                job.barrier();
              }
              end(30);
            },
            {.watchdog_s = 30});
}

TEST_F(Nccl, ToItselfAreOneGroup) {
  const Tensor in = filled_tensor(100, 0), out = filled_tensor(100, 9);
  run_ranks(1, [&](JobTransport& job) {
    const Context context(gpu);
    const auto nccl = over_connected_nccl(job, context);
    const std::vector<Turn> turns = {{.sends = true, .key = {0, 0}, .peer = 0, .group = 1},
                                     {.sends = false, .key = {0, 0}, .peer = 0, .group = 1}};
    nccl->begin_step(turns);
    nccl->send({0, 0}, 0, out);
    nccl->wait(nccl->recv({0, 0}, 0, in));
    nccl->flush();
  });
  EXPECT_EQ(in.raw()[99], std::byte(9));
  EXPECT_EQ(fake::nccl_calls(0), std::vector<std::string>{"send 100 to 0, recv 100 from 0"});
}

// Else the next ones would wait for its end.
TEST_F(Nccl, AnErrorEndsItsGroup) {
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = nccl_among(context, job);
  const Tensor tensor = Tensor::host({{8}, DType::u8});
  const MessageHalf nobody[] = {{false, tensor, 0, nccl->computed()}, {true, tensor, 1, nccl->computed()}};
  expect_error([&] { nccl->exchange(nobody); }, {"ncclSend", "invalid"});
  EXPECT_EQ(fake::nccl_calls(0), std::vector<std::string>());
  const MessageHalf itself[] = {{true, tensor, 0, nccl->computed()}, {false, tensor, 0, nccl->computed()}};
  const Moment done = nccl->exchange(itself)[0];
  EXPECT_EQ(fake::nccl_calls(0), std::vector<std::string>{"send 8 to 0, recv 8 from 0"});
  while (!nccl->reached(done)) std::this_thread::yield();
}

TEST_F(Nccl, TheVersionIsRead) { EXPECT_EQ(cuda::nccl_version(), "NCCL 2.28.9"); }

TEST_F(Nccl, NamesADeviceByItsPlaceOnTheBus) {
  EXPECT_EQ(cuda::device_name(Context(gpu, 1, 3)), "0000:03:00.0");
}

}  // namespace
}  // namespace antichain::test
