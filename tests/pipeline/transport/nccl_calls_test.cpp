// The code that calls CUDA and NCCL runs on stand-ins of both (fake_cuda.h). What it issues is matched and in
// order, nothing is read before it was computed or written while it is in use, and what goes wrong is an
// error. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "framework/cuda/resources.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/solo_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/idle_gpu.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/looking_rank.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/transport/nccl_among.h"

namespace antichain::test {
namespace {

namespace fake = test::fake_cuda;

using test::IdleGpu;
using test::nccl_among;

using MakeTransport = std::function<std::unique_ptr<Transport>(JobTransport& job, const Context&)>;

std::unique_ptr<Transport> over_connected_nccl(JobTransport& job, const Context& context) {
  auto messages = nccl_among(context, job);
  fake::forget_nccl_calls(job.rank());  // that connected them
  return make_ordered_transport(job, std::move(messages));
}
std::unique_ptr<Transport> over_copies(JobTransport& job, const Context& context) {
  return make_staged_transport(job, cuda::make_copy_stream(context));
}

// A RandomRun is a random schedule, of stages with one rank or with replicas.
struct RandomRun {
  explicit RandomRun(unsigned seed, bool replicas) : random(seed) {
    const int S = replicas ? 1 + int(seed) % 4 : 2 + int(seed) % 7;
    profile = random_network(random, S + 2 + int(random() % 8));
    if (replicas && seed % 2) add_weights(profile, random);
    plan = random_plan(random, profile, S);
    if (replicas) plan = randomly_replicated(random, plan, 3);
    const Policy& policy = policies()[seed % (replicas ? 2 : policies().size())];
    if (chunks_of(policy) > 1) plan = on_ranks_of(policy, random_plan(random, profile, S / 2 * 2 + 2));
    schedule = make_schedule(profile, plan, policy, fitting(policy, 3 + int(random() % 6), plan.ranks()));
  }
  int ranks() const { return int(schedule.ranks.size()); }

  std::mt19937 random;
  Profile profile;
  Plan plan;
  Schedule schedule;
};

// Returns how many buffers had other bytes than they should, in two steps.
int wrong_bytes(const RandomRun& run, unsigned seed, const MakeTransport& make) {
  std::atomic<int> wrong{0};
  fake::reset(seed);
  const IdleGpu gpu;
  run_ranks(run.ranks(),
            [&](JobTransport& job) {
              const Context context(gpu, 1, job.rank());
              const auto transport = make(job, context);
              LookingRank rank(run.schedule, run.plan, run.profile, *transport, context, wrong);
              for (int step = 0; step < 2; ++step) rank.step(step);
              std::atomic<bool> done{false};
              fake::launch(cuda::stream_of(context), [&] { done = true; });
              while (!done) std::this_thread::yield();
              job.barrier();
            },
            {.watchdog_s = 30});
  return wrong;
}
// There is a seed for each policy.
void expect_no_wrong_bytes(const MakeTransport& make) {
  for (const bool replicas : {false, true})
    for (unsigned seed = 0; seed < policies().size(); ++seed)
      EXPECT_EQ(wrong_bytes(RandomRun(seed, replicas), seed, make), 0) << "seed " << seed << ' ' << replicas;
}

TEST(NcclCalls, NothingIsReadEarlyOrWrittenInUse) { expect_no_wrong_bytes(over_connected_nccl); }

TEST(StagedCopies, NothingIsReadEarlyOrWrittenInUse) { expect_no_wrong_bytes(over_copies); }

// "send 4096 to 1, recv 8 from 1"
std::vector<std::string> halves_of(const std::string& call) {
  std::vector<std::string> halves;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 2) {
    end = call.find(", ", begin);
    halves.push_back(call.substr(begin, end - begin));
  }
  return halves;
}

// What was recorded of a pair of ranks is the same from both ends. Each bucket's all-reduce is two groups a
// step.
TEST(NcclCalls, AreMatched) {
  for (const bool replicas : {false, true}) {
    const RandomRun run(7, replicas);
    ASSERT_EQ(wrong_bytes(run, 7, over_connected_nccl), 0);
    std::map<std::pair<int, int>, std::vector<std::string>> sent, received;
    size_t calls = 0;
    for (int r = 0; r < run.ranks(); ++r) {
      int groups = 0;
      for (const std::string& call : fake::nccl_calls(r)) {
        const std::vector<std::string> halves = halves_of(call);
        for (const std::string& half : halves) {
          char verb[8] = "", preposition[8] = "";
          int bytes = 0, peer = -1;
          ASSERT_EQ(std::sscanf(half.c_str(), "%7s %d %7s %d", verb, &bytes, preposition, &peer), 4) << call;
          const bool sends = std::strcmp(verb, "send") == 0;
          (sends ? sent[{r, peer}] : received[{peer, r}]).push_back(std::to_string(bytes));
          ++calls;
        }
        groups += halves.size() > 1;
      }
      const auto reduces = std::ranges::count(run.schedule.ranks[size_t(r)], Verb::reduce, &Action::verb);
      EXPECT_EQ(groups, 2 * 2 * reduces);
    }
    EXPECT_GT(calls, 40u);
    EXPECT_EQ(sent, received);
  }
}

// The device stands still where it is held, so whatever did not wait would be early every time.
TEST(NcclCalls, AGroupWaitsForComputingAndComputingForIt) {
  fake::reset(1);
  const IdleGpu gpu;
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

TEST(NcclCalls, ToItselfAreOneGroup) {
  fake::reset(1);
  const IdleGpu gpu;
  const Tensor in = Tensor::host({{100}, DType::u8}), out = Tensor::host({{100}, DType::u8});
  std::fill_n(out.raw(), 100, std::byte(9));
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
TEST(NcclCalls, AnErrorEndsItsGroup) {
  fake::reset(1);
  const IdleGpu gpu;
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

TEST(NcclCalls, TheVersionIsRead) { EXPECT_EQ(cuda::nccl_version(), "NCCL 2.28.9"); }

TEST(DeviceName, IsThePlaceOnTheBus) {
  const IdleGpu gpu;
  EXPECT_EQ(cuda::device_name(Context(gpu, 1, 3)), "0000:03:00.0");
}

}  // namespace
}  // namespace antichain::test
