// Stages have replicas on devices with memory of their own, on stand-ins (fake_gpu.h, fake_nccl.cpp). The
// bits are those of CPU ranks with the same plan, over every transport. The sum over the replicas waits for
// what it needs, and no more. Nothing here runs on a device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>

#include "framework/cuda/resources.h"
#include "framework/error.h"
#include "framework/random.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/forgetful_streams.h"
#include "tests/pipeline/fakes/on_fake_gpu.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/transport/nccl_among.h"
#include "tests/pipeline/transport/passing_transport.h"

namespace antichain::test {
namespace {

using Counts = std::vector<int>;  // of replicas, by stage

int sum(const Counts& replicas) { return std::accumulate(replicas.begin(), replicas.end(), 0); }

MakePlan cut_for(const Counts& replicas) {
  return [replicas](const Profile& profile, int) {
    return replicated(at_random(3)(profile, int(replicas.size())), replicas);
  };
}

TrainingRun train_replicas(const TrainingCase& c, const Counts& replicas) {
  return train_on_threads(c, sum(replicas), cut_for(replicas), by_policy(Policy::one_f_one_b));
}

enum class Way { staged, nccl };
const char* name_of(Way way) { return way == Way::staged ? "ByHostMemory" : "OverNccl"; }

MakeTransport over(Way way) { return way == Way::staged ? staged : over_nccl; }

class DeviceReplicas : public ::testing::TestWithParam<Way> {
 protected:
  void TearDown() override {
    FakeGpu& gpu = FakeGpu::the();
    gpu.around_copies = nullptr;
    gpu.takes_s = nullptr;
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    fake_cuda::reset(1);
    ::unsetenv("ANTICHAIN_FAULT");
  }
};
INSTANTIATE_TEST_SUITE_P(, DeviceReplicas, ::testing::Values(Way::staged, Way::nccl),
                         [](const auto& info) { return name_of(info.param); });

// Through host memory a rank's host waits for messages, and is late with what it starts next.
class DeviceReplicasTime : public DeviceReplicas {};
INSTANTIATE_TEST_SUITE_P(, DeviceReplicasTime, ::testing::Values(Way::nccl),
                         [](const auto& info) { return name_of(info.param); });

struct ReplicaCase {
  Counts replicas;
  int microbatches = 4;
  const char* model = "every_edge";
};

// A seed decides which operations of the emulated device finish late. Each case uses the next seed. Steps of
// training and of evaluation alternate. ResNet-20 has four buckets of gradients, and the others one.
TEST_P(DeviceReplicas, TrainToTheBitsOfTheCpu) {
  unsigned turn = 0;
  for (const auto& [replicas, microbatches, model] : {ReplicaCase{{2}},
                                                      {{2, 1}},
                                                      {{1, 2}, 5},
                                                      {{2, 2}},
                                                      {{3, 1}, 5},
                                                      {{3, 2}, 5, "repeated"},
                                                      {{3, 2}, 5, "resnet20"}}) {
    TrainingCase c{.model = model, .microbatches = microbatches, .steps = 3, .epoch = true};
    const TrainingRun cpu = train_replicas(c, replicas);
    const unsigned seed = 1 + ++turn % 3;
    c.device_augments = seed != 3;
    expect_same(train_replicas(on_fake_gpu(c, seed, over(GetParam())), replicas), cpu,
                fmt::format("{} ranks, seed {}", sum(replicas), seed));
  }
}

// The runner is fed with these images, which differ by micro-batch and step.
class Samples : public BatchSource {
 public:
  void fill(std::string_view, int microbatch, const Tensor& out) override { draw(microbatch, step, out); }
  bool expects_more() const override { return expects; }
  void fill_next(std::string_view, int microbatch, const Tensor& out) override {
    draw(microbatch, step + 1, out);
  }
  bool is_expected() const override { return true; }

  bool expects = true;
  int step = 0;

 private:
  static void draw(int microbatch, int step, const Tensor& out) {
    std::fill_n(out.raw(), out.bytes(), std::byte(0));
    if (out.dtype() != DType::f32) return;  // labels: all of class 0
    const Philox random{uint64_t(100 * step + microbatch)};
    for (int64_t i = 0; i < out.elements(); ++i)
      out.data<float>()[i] = float(random.words(uint64_t(i))[0]) * 0x1p-31f - 1;
  }
};

// OneRank is a rank of a job that trains by hand.
struct OneRank {
  int rank;
  CUstream_st* stream;  // in which it computes
  const std::vector<Action>& actions;
  Samples& samples;
  std::function<StepResult(bool traced)> step;
};

void on_ranks(const Counts& replicas, int microbatches, const MakeTransport& over,
              const std::function<void(OneRank&)>& body, const char* model = "every_edge") {
  run_ranks(sum(replicas), [&](JobTransport& job) {
    DeviceRank device(model, 2, microbatches, Policy::one_f_one_b, cut_for(replicas), sum(replicas),
                      job.rank());
    const std::unique_ptr<Transport> transport = over(job, device.context);
    const auto runner = device.runner(*transport);
    Samples samples;
    const auto step = [&](bool traced) {
      StepResult result = runner->run(
          {.step = uint64_t(samples.step), .batch = 2 * microbatches, .rate = 0.01f, .traced = traced},
          samples);
      ++samples.step;
      return result;
    };
    OneRank rank{job.rank(), cuda::stream_of(device.context), device.schedule.ranks[size_t(job.rank())],
                 samples, step};
    body(rank);
  });
}

TEST_P(DeviceReplicas, EachWaitsForTheDeviceOnceAStep) {
  on_ranks({2, 1}, 4, over(GetParam()), [&](OneRank& r) {
    r.step(false);
    for (int step = 1; step < 4; ++step) {
      const int before = fake_cuda::waits(r.stream);
      r.step(false);
      EXPECT_EQ(fake_cuda::waits(r.stream), before + 1) << "rank " << r.rank;
    }
  });
}

// A kernel that adds takes 20 ms, and the host no time to start it.
TEST_P(DeviceReplicas, ATraceHasTheDevicesTimesOfTheSum) {
  fake_cuda::keep_time(1e-5);
  FakeGpu::the().takes_s = [](const std::string& work) { return work == "add" ? 20e-3 : 0; };
  on_ranks(
      {3}, 3, over(GetParam()),
      [&](OneRank& r) {
        r.step(false);
        const std::vector<Event> events = r.step(true).events;
        ASSERT_EQ(events.size(), r.actions.size());
        double before_s = events[0].start_s, reduces_s = 0;
        for (size_t i = 0; i < events.size(); ++i) {
          EXPECT_EQ(print(events[i].action), print(r.actions[i]));
          EXPECT_LE(before_s, events[i].start_s + 1e-6);  // float32 milliseconds
          if (events[i].action.verb == Verb::reduce) reduces_s += events[i].end_s - events[i].start_s;
          before_s = events[i].end_s;
        }
        EXPECT_EQ(std::ranges::count(events, Verb::reduce, [](const Event& e) { return e.action.verb; }), 4);
        EXPECT_GE(reduces_s, 2 * 20e-3 - 1e-5) << "the last bucket's adds, which no backward hides";
      },
      "resnet20");
}

// Other kernels take time, too, so that the first buckets are added up while the last backward goes on.
TEST_P(DeviceReplicasTime, AddsUpBesideTheLastBackward) {
  fake_cuda::keep_time(1e-5);
  FakeGpu::the().takes_s = [](const std::string& work) { return work == "add" ? 10e-3 : 2e-3; };
  on_ranks(
      {3}, 3, over(GetParam()),
      [&](OneRank& r) {
        r.step(false);
        double reduces_s = 0;
        for (const Event& e : r.step(true).events)
          if (e.action.verb == Verb::reduce) reduces_s += e.end_s - e.start_s;
        EXPECT_GE(reduces_s, 2 * 10e-3 - 1e-5) << "the last bucket's adds";
        EXPECT_LT(reduces_s, 7 * 10e-3) << "of eight adds in four buckets";
      },
      "resnet20");
}

// The others are in the next step by then, and wait for messages that never come.
TEST_P(DeviceReplicas, NameWhoMadeABadNumber) {
  const auto expect_named = [](const Counts& replicas, const char* fault, const char* step,
                               const char* rank) {
    ::setenv("ANTICHAIN_FAULT", fault, 1);
    expect_error([&] { train_replicas(on_fake_gpu({}, 3, over(GetParam())), replicas); }, {step, rank});
  };
  const char* const backward = "nan:rank=-1:step=2:microbatch=2:gradient:conv";
  const char* const forward = "nan:rank=-1:step=2:microbatch=1:activation:narrow";
  expect_named({2}, backward, "step 3, micro-batch 2: ", "(rank 0)");
  expect_named({3}, backward, "step 3, micro-batch 2: ", "(rank 2)");
  expect_named({2}, forward, "step 3, micro-batch 1: ", "(rank 1)");
}

TEST_P(DeviceReplicas, SkipABadStepTogether) {
  for (const char* fault : {"nan:rank=-1:step=2:microbatch=1:activation:narrow",
                            "nan:rank=-1:step=2:microbatch=2:gradient:conv"}) {
    ::setenv("ANTICHAIN_FAULT", fault, 1);
    const TrainingCase c{.on_nan = OnNan::skip};
    EXPECT_EQ(train_replicas(on_fake_gpu(c, 4, over(GetParam())), {2, 1}).state,
              train_replicas(c, {2, 1}).state)
        << fault;
  }
}

// Lets the device begin when the host comes to its one flush.
class LetsGo : public PassingTransport {
 public:
  LetsGo(std::unique_ptr<Transport> own, CUstream_st* stream, std::vector<int>& flushes)
      : PassingTransport(*own), own_(std::move(own)), stream_(stream), flushes_(flushes) {}
  void flush() override {
    ++flushes_[size_t(rank())];
    fake_cuda::let_go(stream_);
    PassingTransport::flush();
  }

 private:
  const std::unique_ptr<Transport> own_;
  CUstream_st* const stream_;
  std::vector<int>& flushes_;
};

// Where no message passes through the host, it starts the whole step, sum and update, before the device has
// done any of it.
TEST_P(DeviceReplicas, TheHostDoesNotWaitForTheSum) {
  std::vector<int> flushes(2);
  const MakeTransport letting_go = [&](JobTransport& job, const Context& context) {
    return std::make_unique<LetsGo>(over(GetParam())(job, context), cuda::stream_of(context), flushes);
  };
  on_ranks({2}, 4, letting_go, [&](OneRank& r) {
    r.samples.expects = false;
    if (GetParam() != Way::staged) fake_cuda::hold(r.stream);
    r.step(false);
  });
  EXPECT_EQ(flushes, (std::vector<int>{1, 1}));
}

// In host memory, what is sent from is not to be received into before all of it has left: MPI's rule.
class Strict : public PassingTransport {
 public:
  Strict(Transport& job, std::atomic<int>& broken) : PassingTransport(job), broken_(broken) {}
  void send(MessageKey key, int peer, Tensor t) override {
    leaving_.push_back(t);
    PassingTransport::send(key, peer, std::move(t));
  }
  Ticket recv(MessageKey key, int peer, Tensor into) override {
    for (const Tensor& t : leaving_)
      broken_ += int(t.raw() < into.raw() + into.bytes() && into.raw() < t.raw() + t.bytes());
    return PassingTransport::recv(key, peer, std::move(into));
  }
  void flush() override {
    PassingTransport::flush();
    leaving_.clear();
  }

 private:
  std::vector<Tensor> leaving_;
  std::atomic<int>& broken_;
};

TEST(ReplicasOnTheHost, ReceiveNothingIntoWhatIsStillBeingSent) {
  std::atomic<int> broken = 0;
  TrainingCase c{.steps = 2};
  c.over = [&](JobTransport& job, const Context&) { return std::make_unique<Strict>(job, broken); };
  for (const Counts& replicas : {Counts{2}, Counts{1, 3}}) train_replicas(c, replicas);
  EXPECT_EQ(broken, 0);
}

std::unique_ptr<Transport> forgetful(Way way, Forgets forgets, JobTransport& job, const Context& context) {
  if (way == Way::staged)
    return make_staged_transport(job,
                                 std::make_unique<ForgetfulCopies>(cuda::make_copy_stream(context), forgets));
  return make_ordered_transport(job, std::make_unique<ForgetfulMessages>(nccl_among(context, job), forgets));
}

// With NCCL the order of a step hides two: the end of the sums' own sends (nccl_test.cpp has it), and a
// buffer that is free, as a group waits for all that was computed anyway.
std::vector<Forgets> needed(Way way) {
  std::vector<Forgets> all{Forgets::computed, Forgets::arrival};
  if (way == Way::staged) all.insert(all.end(), {Forgets::free_buffer, Forgets::delivery});
  return all;
}

// Nothing but the sum is sent here: what it adds up lies over what the backward still uses. The device does
// things in any order, so a forgotten wait may go well, but not always.
TEST_P(DeviceReplicas, NeedTheWaitsOfTheSum) {
  const TrainingCase c{.steps = 3};
  const TrainingRun cpu = train_replicas(c, {2});
  const auto is_wrong = [&](Forgets forgets, unsigned seed) {
    try {
      const auto transport = [&](JobTransport& job, const Context& context) {
        return forgetful(GetParam(), forgets, job, context);
      };
      const TrainingRun run = train_replicas(on_fake_gpu(c, seed, transport), {2});
      return run.losses != cpu.losses || run.state != cpu.state;
    } catch (const Error&) {  // what came too early need not even be numbers
      return true;
    }
  };
  for (unsigned seed = 1; seed <= 4; ++seed) EXPECT_FALSE(is_wrong(Forgets::nothing, seed)) << seed;
  for (const Forgets forgets : needed(GetParam())) {
    bool wrong = false;
    for (unsigned seed = 1; seed <= 60 && !wrong; ++seed) wrong = is_wrong(forgets, seed);
    EXPECT_TRUE(wrong) << int(forgets);
    fake_cuda::broken_rules();
  }
}

}  // namespace
}  // namespace antichain::test
