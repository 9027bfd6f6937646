// One job has copies within a host and messages by NCCL between hosts, on stand-ins of both (fake_gpu.h,
// fake_ipc.h, fake_nccl.cpp). The way is chosen as the program chooses it, and whole steps have the CPU's
// bits. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/cuda/streams.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/choose_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/fakes/fake_ipc.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/transport/passing_transport.h"

namespace antichain::test {
namespace {

// The job as a rank sees it that is on another host.
class JobOnHost : public Job {
 public:
  JobOnHost(Job& job, std::string host) : job_(job), host_(std::move(host)) {}
  std::string host() const override { return host_; }

  int rank() const override { return job_.rank(); }
  int size() const override { return job_.size(); }
  int local_rank() const override { return job_.local_rank(); }
  int local_size() const override { return job_.local_size(); }
  void barrier() override { job_.barrier(); }
  std::string broadcast(std::string bytes, int root) override {
    return job_.broadcast(std::move(bytes), root);
  }
  std::vector<std::string> gather(const std::string& bytes) override { return job_.gather(bytes); }
  void post(int to, std::string letter) override { job_.post(to, std::move(letter)); }
  std::string take(int from) override { return job_.take(from); }
  void check_job() override { job_.check_job(); }
  Progress& activity() override { return job_.activity(); }

 private:
  Job& job_;
  const std::string host_;
};

struct OnHost {
  OnHost(JobTransport& below, std::string host) : job(below, std::move(host)), transport(below, job) {}
  JobOnHost job;
  PassingTransport transport;
};

// Ranks are processes of two hosts, each with a device of its own.
class MixedStep : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeGpu::the();
    register_device_messages("fake_gpu", {.by = "NCCL 2.28.9", .make = cuda::make_nccl_stream});
    fake_cuda::ipc({.threads_are_processes = true});
  }
  void TearDown() override {
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    fake_cuda::ipc({});
    fake_cuda::reset(1);
  }

  std::unique_ptr<Transport> over(JobTransport& job, const Context& context, int first_of_second_host) {
    ChosenTransport chosen =
        choose_transport(context, on_host(job, job.rank() < first_of_second_host ? "here" : "there"), "auto");
    std::lock_guard lock(mutex_);
    sentence_ = chosen.sentence;
    ordered_ = chosen.own->ordered();
    return std::move(chosen.own);
  }

  Transport& on_host(JobTransport& job, const std::string& host) {
    std::lock_guard lock(mutex_);
    return hosts_.emplace_back(std::make_unique<OnHost>(job, host))->transport;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<OnHost>> hosts_;
  std::string sentence_;
  bool ordered_ = false;
};

TEST_F(MixedStep, TrainsToTheBitsOfTheCpu) {
  const auto at_random = [](const Profile& profile, int stages) {
    std::mt19937 random(unsigned(40 + stages));
    return test::random_plan(random, profile, stages);
  };
  TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = train_on_threads(c, 1, at_random, by_policy(Policy::one_f_one_b));
  c.device = FakeGpu::the().name();
  for (const int ranks : {3, 4})
    for (unsigned seed = 1; seed <= 3; ++seed) {
      fake_cuda::reset(seed);
      c.over = [&](JobTransport& job, const Context& context) { return over(job, context, 2); };
      const TrainingRun mixed = train_on_threads(c, ranks, at_random, by_policy(Policy::one_f_one_b));
      expect_same(mixed, cpu, std::to_string(ranks) + " ranks, seed " + std::to_string(seed));
      EXPECT_TRUE(ordered_);
      EXPECT_EQ(sentence_,
                "tensors are copied from GPU to GPU within a host and go by NCCL 2.28.9 between hosts");
      // Connected, and then asked, over NCCL only for pairs of two hosts.
      for (int rank = 0; rank < ranks; ++rank)
        for (const std::string& call : fake_cuda::nccl_calls(rank))
          for (int peer = 0; peer < ranks; ++peer)
            if ((rank < 2) == (peer < 2)) {
              EXPECT_EQ((call + ",").find(" " + std::to_string(peer) + ","), std::string::npos) << call;
            }
      EXPECT_GT(fake_cuda::nccl_calls(1).size(), 8u);
    }
}

// A host that stands still for a message holds no copy up that others need before it.
TEST_F(MixedStep, EndsWhereCallsWaitForTheDeviceAndStreamsShareQueues) {
  const auto at_random = [](const Profile& profile, int stages) {
    std::mt19937 random(unsigned(60 + stages));
    return test::random_plan(random, profile, stages);
  };
  TrainingCase c{.model = "squeezenet", .microbatches = 6, .steps = 3};
  const TrainingRun cpu = train_on_threads(c, 1, at_random, by_policy(Policy::one_f_one_b));
  c.device = FakeGpu::the().name();
  for (const auto& rules : {fake_cuda::StreamRules{.calls_wait_for = fake_cuda::WaitsFor::its_device},
                            fake_cuda::StreamRules{.queues = 1}, fake_cuda::StreamRules{.queues = 2}}) {
    fake_cuda::reset(2);
    fake_cuda::streams(rules);
    c.over = [&](JobTransport& job, const Context& context) { return over(job, context, 2); };
    expect_same(train_on_threads(c, 5, at_random, by_policy(Policy::one_f_one_b)), cpu,
                std::to_string(rules.queues));
  }
}

// The replicas of a stage are on both hosts: half of its all-reduce goes either way.
TEST_F(MixedStep, TrainsReplicasToTheBitsOfTheCpu) {
  const auto cut = [](const Profile& profile, int) {
    std::mt19937 random(3);
    return test::replicated(test::random_plan(random, profile, 2), {3, 1});
  };
  TrainingCase c{.model = "resnet20", .microbatches = 5, .steps = 3};
  const TrainingRun cpu = train_on_threads(c, 4, cut, by_policy(Policy::one_f_one_b));
  c.device = FakeGpu::the().name();
  for (unsigned seed = 1; seed <= 3; ++seed) {
    fake_cuda::reset(seed);
    c.over = [&](JobTransport& job, const Context& context) { return over(job, context, 2); };
    expect_same(train_on_threads(c, 4, cut, by_policy(Policy::one_f_one_b)), cpu, std::to_string(seed));
  }
}

// A pair that NCCL can't connect is no end of the job.
TEST_F(MixedStep, FallsBackWhereNcclCannotConnect) {
  for (const bool copies : {true, false}) {
    fake_cuda::reset(1);
    fake_cuda::nccl({.apart = {0, 2}});
    fake_cuda::ipc({.threads_are_processes = true, .refused = !copies});
    run_ranks(3, [&](JobTransport& job) {
      const Context context(FakeGpu::the(), 1, job.rank());
      const auto transport = over(job, context, 2);
      EXPECT_FALSE(transport->ordered());
      const Tensor tensor = context.backend().tensor({{1000}, DType::u8});
      if (job.rank() == 0) transport->send({0, 0}, 2, tensor);
      if (job.rank() == 2) transport->wait(transport->recv({0, 0}, 0, tensor));
      transport->flush();
      job.barrier();
    });
    const std::string begin =
        copies ? "tensors are copied from GPU to GPU within a host and go through host memory "
                 "between hosts: "
               : "tensors travel through host memory: ";
    // Either of the two may find out first.
    const bool first = sentence_.starts_with(begin + "rank 0 on here found NCCL unable: ");
    EXPECT_TRUE(first || sentence_.starts_with(begin + "rank 2 on there found NCCL unable: ")) << sentence_;
    EXPECT_NE(sentence_.find("remote process exited"), std::string::npos) << sentence_;
  }
}

// All others wait for it, and give up before the watchdog's limit: it alone is named.
TEST(MixedStepDeathTest, OnlyTheRankThatHangsWhileItConnectsIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    FakeGpu::the();
    fake_cuda::ipc({.threads_are_processes = true});
    const auto hangs_on_one = [](const Context& context, Job& job, const std::vector<int>& peers,
                                 const std::function<void()>& look) {
      if (job.rank() != 1) return cuda::make_nccl_stream(context, job, peers, look);
      for (int question = 0; question < 2; ++question) job.broadcast("", 0);
      job.activity().doing("hanging");
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    };
    register_device_messages("fake_gpu", {.by = "NCCL 2.28.9", .make = hangs_on_one});
    const auto body = [](JobTransport& job) {
      const Context context(FakeGpu::the(), 1, job.rank());
      OnHost housed(job, std::to_string(job.rank()));
      choose_transport(context, housed.transport, "auto");
    };
    run_ranks(3, body, {.watchdog_s = 2});
  };
  EXPECT_EXIT(job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)),
              "antichain: rank 1 has made no progress for .*\"hanging\"");
}

}  // namespace
}  // namespace antichain::test
