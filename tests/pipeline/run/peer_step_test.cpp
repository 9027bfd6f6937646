// Ranks copy into other ranks' devices, on stand-ins of CUDA (fake_gpu.h, fake_ipc.h). Whole steps run
// through the very code of pipeline/cuda, by ranks that count as processes, with the CPU's bits. What is not
// waited for shows, and who can't copy falls back. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "framework/cuda/resources.h"
#include "framework/error.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/choose_transport.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/peer_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/fakes/fake_ipc.h"
#include "tests/pipeline/fakes/forgetful_streams.h"
#include "tests/pipeline/fakes/over_peers.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/transport/peers_between.h"

namespace antichain::test {
namespace {

using fake_cuda::IpcRules;

TrainingRun on_the_cpu(const TrainingCase& c) {
  return train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
}
TrainingRun on_peers(TrainingCase c, int ranks, Policy policy, unsigned seed) {
  fake_cuda::reset(seed);
  c.device = FakeGpu::the().name();
  c.over = over_peers;
  return train_on_threads(c, ranks, at_random(seed), by_policy(policy));
}

class PeerStep : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_cuda::ipc({.threads_are_processes = true});
    left_open_ = fake_cuda::opened();
  }
  void TearDown() override {
    FakeGpu::the().around_peers = nullptr;
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    EXPECT_EQ(fake_cuda::opened() > left_open_, ends_early_);
    fake_cuda::ipc({});
  }

  bool ends_early_ = false;  // with memory open, which nobody frees then

 private:
  int left_open_ = 0;
};

// Random cuts of a network with skips; training and evaluation take turns.
TEST_F(PeerStep, TrainsToTheBitsOfTheCpu) {
  const TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = on_the_cpu(c);
  for (const int ranks : {1, 2, 3, 4})
    for (const Policy policy : {Policy::one_f_one_b, Policy::gpipe})
      expect_same(on_peers(c, ranks, policy, unsigned(ranks)), cpu,
                  std::to_string(ranks) + " ranks, " + std::string(policy.name));
}

TEST_F(PeerStep, TrainsToTheBitsOfTheCpuAsThreadsOfOneProcess) {
  fake_cuda::ipc({});
  const TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = on_the_cpu(c);
  for (const int ranks : {2, 4})
    expect_same(on_peers(c, ranks, Policy::one_f_one_b, unsigned(ranks)), cpu,
                std::to_string(ranks) + " ranks");
}

// Concatenations, dropout and two losses; few micro-batches and many.
TEST_F(PeerStep, TrainsToTheBitsOfTheCpuWithAnyNumberOfMicroBatches) {
  for (const int microbatches : {1, 2, 7}) {
    const TrainingCase c{.model = "squeezenet", .microbatches = microbatches, .steps = 2};
    expect_same(on_peers(c, 3, Policy::one_f_one_b, 5), on_the_cpu(c), std::to_string(microbatches));
  }
}

// This counts copies.
class Between : public PeersBetween {
 public:
  using PeersBetween::PeersBetween;
  Moment write(int peer, const Tensor& from, const PeerNote& shown, const Moment& after,
               PeerNote& written) override {
    ++writes;
    return peers_->write(peer, from, shown, after, written);
  }
  static inline std::atomic<int> writes{0};
};

// One rank can't open what rank 0 shows; so they, and only they, go through host memory.
class Refusing : public Between {
 public:
  using Between::Between;
  std::string reach(int peer, const std::string& introduction) override {
    return peer == 0 && ++tries == 1 ? "no" : peers_->reach(peer, introduction);
  }
  static inline std::atomic<int> tries{0};
};

TEST_F(PeerStep, MixedPairsTrainToTheBitsOfTheCpu) {
  const TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = on_the_cpu(c);
  FakeGpu::the().around_peers = [](std::unique_ptr<PeerStream> peers) {
    return std::make_unique<Refusing>(std::move(peers));
  };
  for (const int ranks : {2, 3, 4}) {
    Refusing::tries = Between::writes = 0;
    expect_same(on_peers(c, ranks, Policy::one_f_one_b, unsigned(ranks) + 1), cpu,
                std::to_string(ranks) + " ranks");
    EXPECT_EQ(Between::writes > 0, ranks > 2) << ranks;
  }
}

std::function<std::unique_ptr<PeerStream>(std::unique_ptr<PeerStream>)> that_forget(Forgets forgets) {
  fake_cuda::ipc({.threads_are_processes = true, .forgets_waits = forgets == Forgets::free_buffer});
  return [forgets](std::unique_ptr<PeerStream> peers) {
    return std::make_unique<ForgetfulPeers>(std::move(peers), forgets);
  };
}

// The device does things in any order, so a forgotten wait may go well, but not always.
TEST_F(PeerStep, NeedsItsWaits) {
  const TrainingCase c{.model = "resnet20", .microbatches = 6, .steps = 3};
  const TrainingRun cpu = on_the_cpu(c);
  const auto is_wrong = [&](unsigned seed) {
    try {
      const TrainingRun run = on_peers(c, 3, Policy::one_f_one_b, seed);
      return run.losses != cpu.losses || run.state != cpu.state;
    } catch (const Error&) {  // what came too early need not even be numbers
      ends_early_ = true;
      return true;
    }
  };
  for (const Forgets forgets : {Forgets::nothing, Forgets::computed, Forgets::arrival}) {
    FakeGpu::the().around_peers = that_forget(forgets);
    bool wrong = false;
    const unsigned seeds = forgets == Forgets::nothing ? 4 : 60;  // the first one that goes wrong is enough
    for (unsigned seed = 1; seed <= seeds && !wrong; ++seed) wrong = is_wrong(seed);
    EXPECT_EQ(wrong, forgets != Forgets::nothing) << int(forgets);
    if (forgets != Forgets::nothing) fake_cuda::broken_rules();
  }
}

// Two more, which a step's own dependencies hide: nothing is copied into a buffer that is still read, and
// after a flush, what was sent is the sender's again. The receiver's device is held at reading what was there
// before.
TEST_F(PeerStep, NeedsTheWaitsThatStepsHide) {
  struct Seen {
    std::byte before{}, arrived{};
    auto operator<=>(const Seen&) const = default;
  };
  const auto seen = [](Forgets forgets) {
    constexpr std::byte old{1}, sent{2}, next{3};
    fake_cuda::reset(0);
    FakeGpu::the().around_peers = that_forget(forgets);
    Seen seen;
    std::atomic<bool> holds{false}, is_next{false};
    run_ranks(2, [&](JobTransport& job) {
      Context context(FakeGpu::the(), 1, job.rank());
      const auto transport = over_peers(job, context);
      const Tensor tensor = context.backend().tensor({{1000}, DType::u8});
      CUstream_st* const computing = cuda::stream_of(context);
      const auto fill = [&](std::byte value) {
        fake_cuda::launch(computing, [raw = tensor.raw(), value] { std::fill_n(raw, 1000, value); });
      };
      const auto read = [&](std::byte& into) {
        fake_cuda::launch(computing, [raw = tensor.raw(), &into] { into = raw[999]; });
      };
      if (job.rank() == 0) {
        fill(sent);
        while (!holds) std::this_thread::yield();
        transport->send({0, 0}, 1, tensor);
        transport->flush();
        fill(next);
        fake_cuda::drain(computing);
        is_next = true;
      } else {
        fill(old);
        fake_cuda::drain(computing);
        fake_cuda::hold(computing);
        read(seen.before);
        const auto ticket = transport->recv({0, 0}, 0, tensor);
        holds = true;
        // Only who forgets gets so far; the others are left some time for it.
        const auto patience = std::chrono::milliseconds(forgets == Forgets::nothing ? 100 : 60'000);
        const auto end = std::chrono::steady_clock::now() + patience;
        while (!is_next && std::chrono::steady_clock::now() < end) transport->progress();
        fake_cuda::let_go(computing);
        transport->wait(ticket);
        read(seen.arrived);
      }
      fake_cuda::drain();
    });
    return seen;
  };
  EXPECT_EQ(seen(Forgets::nothing), (Seen{std::byte(1), std::byte(2)}));
  EXPECT_EQ(seen(Forgets::free_buffer), (Seen{std::byte(2), std::byte(2)}));
  fake_cuda::broken_rules();
  EXPECT_EQ(seen(Forgets::delivery), (Seen{std::byte(1), std::byte(3)}));
}

// What `choose_transport` says and makes, on two ranks that share a device.
std::string chosen(IpcRules rules, const std::string& asked, bool share = true) {
  register_device_messages("fake_gpu", {.by = "NCCL 2.28.9", .make = cuda::make_nccl_stream});
  fake_cuda::ipc(rules);
  fake_cuda::reset(1);
  std::string sentence;
  run_ranks(2, [&](JobTransport& job) {
    Context context(FakeGpu::the(), 1, share ? 0 : job.rank());
    const ChosenTransport tensors = choose_transport(context, job, asked);
    const Tensor tensor = context.backend().tensor({{1000}, DType::u8});
    const Tensor host = Tensor::host(tensor.spec());
    if (job.rank() == 0) {
      std::fill_n(tensor.raw(), 1000, std::byte(7));
      tensors.own->send({0, 0}, 1, tensor);
    } else {
      tensors.own->wait(tensors.own->recv({0, 0}, 0, tensor));
      context.backend().copy(context, tensor, host);
      EXPECT_EQ(host.raw()[999], std::byte(7)) << asked;
    }
    tensors.own->flush();
    if (job.rank() == 0) sentence = tensors.sentence;
  });
  return sentence;
}

TEST_F(PeerStep, RanksOfAHostCopyFromDeviceToDevice) {
  for (const bool processes : {true, false})
    for (const bool share : {true, false}) {
      const IpcRules rules{.threads_are_processes = processes};
      EXPECT_EQ(chosen(rules, "auto", share), "tensors are copied from GPU to GPU");
      EXPECT_EQ(chosen(rules, "ipc", share), "tensors are copied from GPU to GPU: --transport ipc");
      EXPECT_EQ(chosen(rules, "mpi", share), "tensors travel through host memory: --transport mpi");
    }
}

TEST_F(PeerStep, WhoCannotSaysWhyAndGoesThroughHostMemory) {
  ends_early_ = true;
  const auto expect_refused = [](IpcRules rules, const std::string& why, bool share = true) {
    const std::string sentence = chosen(rules, "auto", share);
    EXPECT_EQ(sentence.find("tensors travel through host memory: "), 0u) << sentence;
    EXPECT_NE(sentence.find("can't write to rank 0's device (" + why), std::string::npos) << sentence;
    expect_error([&] { chosen(rules, "ipc", share); },
                 {"--transport ipc is asked for, but rank 1 on", why.c_str(), "use --transport mpi"});
  };
  expect_refused({.threads_are_processes = true, .refused = true}, "CUDA IPC, opening memory");
  expect_refused({.threads_are_processes = true, .opens_the_first = true},
                 "CUDA IPC, what it opens is other memory");
  expect_refused({.peer_access = false}, "there is no peer access between the two GPUs", false);
  expect_error([&] { chosen({.peer_access = false}, "nccl", false); }, {"threads of one process"});
}

// A rank that ends by an error takes nothing away that others may still use.
TEST_F(PeerStep, AnErrorOfOneRankEndsTheOthers) {
  ends_early_ = true;
  const auto body = [](JobTransport& job) {
    Context context(FakeGpu::the(), 1, job.rank());
    const auto transport = over_peers(job, context);
    const Tensor tensor = context.backend().tensor({{1000}, DType::u8});
    const auto ticket = transport->recv({0, 0}, 1 - job.rank(), tensor);
    if (job.rank() == 1) throw Error("rank 1 has had enough", "", ExitCode::failure);
    transport->wait(ticket);
  };
  expect_error([&] { run_ranks(2, body); }, {"rank 1 has had enough"});
}

}  // namespace
}  // namespace antichain::test
