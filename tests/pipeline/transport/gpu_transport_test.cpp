// On a machine with one GPU these tests use NCCL with the rank itself as its peer, and ranks (threads) that
// share the GPU, through host memory. tests/gpu/program.sh uses processes.
// Elsewhere every test is skipped, by name: "needs a CUDA device". The CUDA module is loaded as the program
// loads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "framework/backend.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/host/seconds.h"
#include "pipeline/transport/choose_transport.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/run/on_gpu.h"

namespace antichain::test {
namespace {

class GpuTransport : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (gpu) messages = device_messages("cuda", no_messages);
  }

  // Returns a tensor on the device, of random bytes or zeros.
  Tensor on_device(const Context& context, int64_t bytes, uint32_t seed) const {
    const Tensor host = Tensor::host({{bytes}, DType::u8}), device = gpu->tensor(host.spec());
    std::mt19937 random(seed);
    if (seed > 0) std::generate_n(host.raw(), bytes, [&] { return std::byte(random()); });
    gpu->copy(context, host, device);
    return device;
  }
  void expect_same_bytes(const Context& context, const Tensor& a, const Tensor& b) const {
    const Tensor x = Tensor::host(a.spec()), y = Tensor::host(b.spec());
    gpu->copy(context, a, x), gpu->copy(context, b, y);
    EXPECT_TRUE(std::equal(x.raw(), x.raw() + x.bytes(), y.raw(), y.raw() + y.bytes()))
        << a.bytes() << " bytes";
  }

  // Ranks that are threads send through host memory.
  std::unique_ptr<Transport> staged(JobTransport& job, const Context& context) const {
    return make_staged_transport(job, streams->copies(context));
  }

  const DeviceMessages* messages = nullptr;  // nullptr, and why
  std::string no_messages;
};

// Sizes go from a byte to more than NCCL's own buffers; the last ones are uneven.
TEST_F(GpuTransport, NcclPassesMessagesToItself) {
  if (!messages) GTEST_SKIP() << "needs NCCL: " << no_messages;
  run_ranks(1, [&](JobTransport& job) {
    Context context(*gpu);
    gpu->enter(context);
    const auto nccl = make_ordered_transport(job, messages->make(context, job, [] {}));
    const std::vector<int64_t> sizes = {1, 4, 4096, 1 << 20, (64 << 20) + 12, 1'000'003};
    std::vector<Turn> turns;
    for (int i = 0; i < int(sizes.size()); ++i) {
      turns.push_back({.sends = true, .key = {0, i}, .peer = 0, .group = i + 1});
      turns.push_back({.sends = false, .key = {0, i}, .peer = 0, .group = i + 1});
    }
    for (uint32_t step = 0; step < 3; ++step) {
      nccl->begin_step(turns);
      std::vector<Tensor> sent, received;
      for (int i = 0; i < int(sizes.size()); ++i) {
        sent.push_back(on_device(context, sizes[size_t(i)], 100 * step + uint32_t(i) + 1));
        received.push_back(on_device(context, sizes[size_t(i)], 0));
        const auto ticket = nccl->recv({0, i}, 0, received.back());
        nccl->send({0, i}, 0, sent.back());
        nccl->wait(ticket);
      }
      nccl->flush();
      for (size_t i = 0; i < sizes.size(); ++i) expect_same_bytes(context, sent[i], received[i]);
    }
  });
}

// Says what a message costs the host: no assertion, as machines differ.
TEST_F(GpuTransport, NcclTellsWhatAMessageCostsTheHost) {
  if (!messages) GTEST_SKIP() << "needs NCCL: " << no_messages;
  run_ranks(1, [&](JobTransport& job) {
    Context context(*gpu);
    gpu->enter(context);
    const auto nccl = make_ordered_transport(job, messages->make(context, job, [] {}));
    const Tensor from = on_device(context, 1024, 1), to = on_device(context, 1024, 0);
    constexpr int count = 2000;
    std::vector<Turn> turns;
    for (int i = 0; i < count; ++i)
      for (const bool sends : {true, false}) turns.push_back({sends, {0, i}, 0, i + 1, i % 2});
    nccl->begin_step(turns);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      const auto ticket = nccl->recv({0, i}, 0, to);
      nccl->send({0, i}, 0, from);
      nccl->wait(ticket);
    }
    std::printf("a message to itself: %.1f us of the host\n", 1e6 * seconds_since(start) / count);
    nccl->flush();
  });
}

TEST_F(GpuTransport, NcclIsRefusedWhereRanksShareTheGpu) {
  const auto body = [&](JobTransport& job) {
    Context context(*gpu, 1, 0);  // the same device for both
    gpu->enter(context);
    choose_transport(context, job, "nccl");
  };
  if (!messages)
    expect_error([&] { run_ranks(2, body); }, {"rank 0 has no NCCL"});
  else
    expect_error([&] { run_ranks(2, body); }, {"ranks 0 and 1", "share one GPU", "use --transport mpi"});
}

TEST_F(GpuTransport, AutoGoesThroughHostMemoryWhereRanksShareTheGpu) {
  run_ranks(2, [&](JobTransport& job) {
    Context context(*gpu, 1, 0);
    gpu->enter(context);
    const ChosenTransport chosen = choose_transport(context, job, "auto");
    ASSERT_NE(chosen.own, nullptr);
    EXPECT_FALSE(chosen.own->ordered());
    EXPECT_NE(chosen.sentence.find("through host memory"), std::string::npos) << chosen.sentence;
  });
}

// Every rank sends to every other one, in both directions at once, many times over the same sizes: a copy
// that began too early or a buffer used again too soon would show.
TEST_F(GpuTransport, TensorsArriveWhole) {
  run_ranks(3, [&](JobTransport& job) {
    Context context(*gpu, 1, 0);
    gpu->enter(context);
    const auto transport = staged(job, context);
    for (int round = 0; round < 30; ++round) {
      const int64_t bytes = round % 3 == 0 ? 1000 + round : (1 << 20) + 4 * round;
      std::vector<Tensor> received;
      std::vector<Transport::Ticket> tickets;
      for (int peer = 0; peer < job.size(); ++peer) {
        received.push_back(on_device(context, bytes, 0));
        tickets.push_back(peer == job.rank() ? 0 : transport->recv({0, 0}, peer, received.back()));
      }
      const Tensor mine = on_device(context, bytes, uint32_t(1000 * round + job.rank() + 1));
      for (int peer = 0; peer < job.size(); ++peer)
        if (peer != job.rank()) transport->send({0, 0}, peer, mine);
      for (int peer = 0; peer < job.size(); ++peer)
        if (peer != job.rank()) {
          transport->wait(tickets[size_t(peer)]);
          expect_same_bytes(context, received[size_t(peer)],
                            on_device(context, bytes, uint32_t(1000 * round + peer + 1)));
        }
      transport->flush();
    }
  });
}

}  // namespace
}  // namespace antichain::test
