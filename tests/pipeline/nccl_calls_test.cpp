// The code that calls CUDA and NCCL, on stand-ins of both (fake_cuda.h): what it issues is matched and in order, nothing is read
// before it was computed or written while it is in use, and what goes wrong is an error. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "framework/backend.h"
#include "framework/cuda/resources.h"
#include "pipeline/channels.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/message_order.h"
#include "pipeline/ordered_transport.h"
#include "pipeline/peer_transport.h"
#include "pipeline/solo_transport.h"
#include "pipeline/staged_transport.h"
#include "pipeline/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fake_cuda.h"
#include "tests/pipeline/fake_ipc.h"
#include "tests/pipeline/networks.h"

namespace antichain::test {
namespace {

namespace fake = testing::fake_cuda;

class FakeGpu : public Backend {
 public:
  std::string name() const override { return "fake"; }
  std::string description() const override { return "a fake GPU"; }
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override { return fake::device_memory(bytes); }
  std::shared_ptr<void> open(int local_rank) const override {
    return std::make_shared<cuda::Resources>(
        cuda::Resources{.device = local_rank, .stream = fake::make_stream()});
  }
  void copy(const Context&, const Tensor&, const Tensor&) const override {
    check_failed("copy", "nothing is copied here");
  }
  void add(Context&, const Tensor&, const Tensor&) const override {
    check_failed("add", "nothing is added here");
  }
  void sgd(Context&, const SgdOptions&, const Rate&, const Tensor&, const Tensor&,
           const Tensor&) const override {
    check_failed("sgd", "nothing is learned here");
  }
};

// A rank that obeys a schedule as the runner does, with kernels that look whether what they need is there and write what is sent.
// The host never waits for them; memory is in rings of the sizes that the schedule's slots say.
class LookingRank {
 public:
  LookingRank(const Schedule& schedule, const Plan& plan, const Profile& network, Transport& transport,
              const Context& context, std::atomic<int>& wrong)
      : actions_(schedule.ranks[size_t(transport.rank())]),
        microbatches_(schedule.microbatches),
        slots_(slots(schedule)[size_t(transport.rank())]),
        channels_(schedule),
        transport_(transport),
        device_(context.backend()),
        stream_(cuda::stream_of(context)),
        wrong_(wrong) {
    const auto issue =
        issue_order(message_order(schedule, plan, network, one_link({})), int(schedule.ranks.size()));
    for (const int i : issue[size_t(me())]) {
      const Action& a = actions_[size_t(i)];
      turns_.push_back({a.verb, {channel(a), a.microbatch}, a.peer});
    }
    for (const Action& a : actions_) {
      if (a.verb == Verb::recv && a.microbatch == 0)
        receives_[channel(a)] = {a, ring(slots_.receive_ring(a.message.flow))};
      const bool activation = a.message.flow == Flow::activation;
      if (a.verb == Verb::send && a.microbatch == 0)
        sends_[channel(a)] = ring(activation ? slots_.sent_activations : slots_.sent_gradients);
    }
  }

  void step(int number) {
    number_ = number;
    transport_.begin_step(turns_);
    for (auto& [c, r] : receives_) r.released = r.posted = 0, r.tickets.clear();
    post();
    std::vector<Action> needed;
    for (size_t i = 0; i < actions_.size(); ++i) {
      const Action& a = actions_[i];
      if (a.verb == Verb::recv) {
        transport_.wait(receives_.at(channel(a)).tickets.at(size_t(a.microbatch)));
        needed.push_back(a);
      } else if (computes(a.verb)) {
        std::vector<Action> sent;
        for (size_t s = i + 1; s < actions_.size() && actions_[s].verb == Verb::send; ++s)
          sent.push_back(actions_[s]);
        compute(std::exchange(needed, {}), sent);
        release(a);
      } else if (a.verb == Verb::send) {
        transport_.send({channel(a), a.microbatch}, a.peer, buffer(sends_.at(channel(a)), a));
      }
      transport_.progress();
    }
    transport_.flush();
  }

 private:
  struct Receive {
    Action first;
    std::vector<Tensor> ring;
    int released = 0, posted = 0;
    std::vector<Transport::Ticket> tickets;
  };

  int me() const { return transport_.rank(); }
  int channel(const Action& a) const {
    return a.verb == Verb::send ? channels_(me(), a.peer, a.message) : channels_(a.peer, me(), a.message);
  }
  std::vector<Tensor> ring(int size) const {
    std::vector<Tensor> buffers;
    for (int i = 0; i < std::clamp(size, 1, microbatches_); ++i)
      buffers.push_back(device_.tensor({{300}, DType::i32}));
    return buffers;
  }
  static const Tensor& buffer(const std::vector<Tensor>& ring, const Action& a) {
    return ring[size_t(a.microbatch) % ring.size()];
  }
  int value(const Action& a) const { return (number_ * 1000 + channel(a)) * 1000 + a.microbatch + 1; }

  void compute(const std::vector<Action>& needed, const std::vector<Action>& sent) {
    std::vector<std::pair<Tensor, int>> in, out;
    for (const Action& a : needed) in.push_back({buffer(receives_.at(channel(a)).ring, a), value(a)});
    for (const Action& a : sent) out.push_back({buffer(sends_.at(channel(a)), a), value(a)});
    fake::launch(stream_, [in, out, this] {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      for (const auto& [tensor, value] : in)
        wrong_ += int(
            std::any_of(tensor.data<int>(), tensor.data<int>() + 300, [v = value](int x) { return x != v; }));
      for (const auto& [tensor, value] : out) std::fill_n(tensor.data<int>(), 300, value);
    });
  }

  void release(const Action& a) {
    const bool learns = actions_.back().verb == Verb::step;
    for (auto& [c, r] : receives_) {
      const bool gradient = r.first.message.flow == Flow::gradient;
      if (learns ? a.verb == Verb::backward : a.verb == Verb::forward && !gradient)
        r.released = a.microbatch + 1;
    }
    post();
  }
  void post() {
    for (auto& [c, r] : receives_)
      for (; r.posted < microbatches_ && r.posted < r.released + int(r.ring.size()); ++r.posted)
        r.tickets.push_back(
            transport_.recv({c, r.posted}, r.first.peer, r.ring[size_t(r.posted) % r.ring.size()]));
  }

  const std::vector<Action>& actions_;
  const int microbatches_;
  const Slots slots_;
  const Channels channels_;
  Transport& transport_;
  const Backend& device_;
  const cuda::Stream stream_;
  std::atomic<int>& wrong_;
  std::vector<Turn> turns_;
  std::map<int, Receive> receives_;
  std::map<int, std::vector<Tensor>> sends_;
  int number_ = 0;
};

using MakeTransport = std::function<std::unique_ptr<Transport>(Transport& job, const Context&)>;

std::unique_ptr<Transport> over_nccl(Transport& job, const Context& context) {
  return make_ordered_transport(job, cuda::make_nccl_stream(context, job));
}
std::unique_ptr<Transport> over_copies(Transport& job, const Context& context) {
  return make_staged_transport(job, cuda::make_copy_stream(context));
}

std::unique_ptr<Transport> over_peers(Transport& job, const Context& context) {
  auto peers = cuda::make_peer_stream(context, "process-" + std::to_string(fake::this_process()));
  const PeerPairs pairs = find_pairs(job, *peers);
  return make_peer_transport(job, std::move(peers), cuda::make_copy_stream(context), pairs);
}

// How many buffers had other bytes than they should, in two steps of a random schedule.
int wrong_bytes(unsigned seed, const MakeTransport& make) {
  std::mt19937 random(seed);
  const int S = 2 + int(seed) % 7;
  const Profile network = random_network(random, S + 2 + int(random() % 8));
  const Plan plan = random_plan(random, network, S);
  const Policy policies[] = {Policy::one_f_one_b, Policy::gpipe, Policy::forward_only};
  const Schedule schedule = make_schedule(network, plan, policies[seed % 3], 3 + int(random() % 6));
  std::atomic<int> wrong{0};
  fake::reset(seed);
  const FakeGpu gpu;
  run_ranks(S,
            [&](Transport& job) {
              const Context context(gpu, 1, job.rank());
              const auto transport = make(job, context);
              LookingRank rank(schedule, plan, network, *transport, context, wrong);
              for (int step = 0; step < 2; ++step) rank.step(step);
              std::atomic<bool> done{false};
              fake::launch(cuda::stream_of(context), [&] { done = true; });
              while (!done) std::this_thread::yield();
              job.barrier();
            },
            {.watchdog_s = 30});
  return wrong;
}

TEST(NcclCalls, NothingIsReadEarlyOrWrittenInUse) {
  for (unsigned seed = 0; seed < 21; ++seed) EXPECT_EQ(wrong_bytes(seed, over_nccl), 0) << "seed " << seed;
}

TEST(StagedCopies, NothingIsReadEarlyOrWrittenInUse) {
  for (unsigned seed = 0; seed < 21; ++seed) EXPECT_EQ(wrong_bytes(seed, over_copies), 0) << "seed " << seed;
}

TEST(PeerCopies, NothingIsReadEarlyOrWrittenInUse) {
  for (const bool processes : {true, false}) {
    fake::ipc({.threads_are_processes = processes});
    for (unsigned seed = 0; seed < 21; ++seed) EXPECT_EQ(wrong_bytes(seed, over_peers), 0) << "seed " << seed;
    EXPECT_EQ(fake::broken_rules(), std::vector<std::string>());
    EXPECT_EQ(fake::opened(), 0);
  }
}

// What was recorded of a pair of ranks is the same from both ends.
TEST(NcclCalls, AreMatched) {
  ASSERT_EQ(wrong_bytes(5, over_nccl), 0);
  std::map<std::pair<int, int>, std::vector<std::string>> sent, received;
  const int S = 2 + 5;
  size_t calls = 0;
  for (int r = 0; r < S; ++r)
    for (const std::string& call : fake::nccl_calls(r)) {
      char verb[8] = "", preposition[8] = "";
      int bytes = 0, peer = -1;
      ASSERT_EQ(std::sscanf(call.c_str(), "%7s %d %7s %d", verb, &bytes, preposition, &peer), 4) << call;
      const bool sends = std::strcmp(verb, "send") == 0;
      (sends ? sent[{r, peer}] : received[{peer, r}]).push_back(std::to_string(bytes));
      ++calls;
    }
  EXPECT_GT(calls, 40u);
  EXPECT_EQ(sent, received);
}

TEST(NcclCalls, ToItselfAreOneGroup) {
  fake::reset(1);
  const FakeGpu gpu;
  const Tensor in = Tensor::host({{100}, DType::u8}), out = Tensor::host({{100}, DType::u8});
  std::fill_n(out.raw(), 100, std::byte(9));
  run_ranks(1, [&](Transport& job) {
    const Context context(gpu);
    const auto nccl = over_nccl(job, context);
    const std::vector<Turn> turns = {{Verb::send, {0, 0}, 0, 1}, {Verb::recv, {0, 0}, 0, 1}};
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
  const FakeGpu gpu;
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = cuda::make_nccl_stream(context, job);
  const Tensor tensor = Tensor::host({{8}, DType::u8});
  const MessageHalf nobody[] = {{false, tensor, 0, nccl->computed()}, {true, tensor, 1, nccl->computed()}};
  expect_error([&] { nccl->exchange(nobody); }, {"ncclSend", "invalid"});
  EXPECT_EQ(fake::nccl_calls(0), std::vector<std::string>());
  const MessageHalf itself[] = {{true, tensor, 0, nccl->computed()}, {false, tensor, 0, nccl->computed()}};
  const Moment done = nccl->exchange(itself);
  EXPECT_EQ(fake::nccl_calls(0), std::vector<std::string>{"send 8 to 0, recv 8 from 0"});
  while (!nccl->reached(done)) std::this_thread::yield();
}

// One of two: the other one never comes.
class Deserted : public SoloTransport {
 public:
  int size() const override { return 2; }
};

TEST(NcclCalls, ConnectingHasADeadline) {
  fake::reset(1);
  const FakeGpu gpu;
  const Context context(gpu);
  Deserted job;
  job.activity().limit(0.2);
  expect_error([&] { cuda::make_nccl_stream(context, job); }, {"rank 0", "not all ranks connected in time"});
  EXPECT_TRUE(fake::aborted(0));
}

TEST(NcclCalls, AnAsynchronousErrorAbortsTheCommunicator) {
  fake::reset(1);
  const FakeGpu gpu;
  const Context context(gpu);
  SoloTransport job;
  const auto nccl = cuda::make_nccl_stream(context, job);
  EXPECT_EQ(nccl->failure(), "");
  fake::fail(0);
  EXPECT_EQ(nccl->failure(), "NCCL: remote process exited");
  EXPECT_TRUE(fake::aborted(0));
  EXPECT_EQ(nccl->failure(), "NCCL: remote process exited");
  const Tensor tensor = Tensor::host({{8}, DType::u8});
  const MessageHalf send[] = {{true, tensor, 0, nccl->computed()}};
  expect_error([&] { nccl->exchange(send); }, {"rank 0 can't go on", "remote process exited"});
}

TEST(NcclCalls, TheVersionIsRead) { EXPECT_EQ(cuda::nccl_version(), "NCCL 2.28.9"); }

TEST(DeviceName, IsThePlaceOnTheBus) {
  const FakeGpu gpu;
  EXPECT_EQ(cuda::device_name(Context(gpu, 1, 3)), "0000:03:00.0");
}

}  // namespace
}  // namespace antichain::test
