// The way of tensors is chosen as the program chooses it, on stand-ins of GPUs and NCCL (fake_gpu.h,
// fake_nccl.cpp). Each rank is a process with a device of its own, or they share one. Nothing here runs on a
// device.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "pipeline/cuda/streams.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/choose_transport.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_devices.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

class ChosenWay : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeGpu::the();
    register_device_messages("fake_gpu", {.by = "NCCL 2.28.9", .make = cuda::make_nccl_stream});
    fake_cuda::devices({.threads_are_processes = true});
    fake_cuda::reset(1);
  }
  void TearDown() override {
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    fake_cuda::devices({});
    fake_cuda::reset(1);
  }

  std::unique_ptr<Transport> over(JobTransport& job, const Context& context, const char* asked = "auto") {
    ChosenTransport chosen = choose_transport(context, job, asked);
    std::lock_guard lock(mutex_);
    sentence_ = chosen.sentence;
    return std::move(chosen.own);
  }

  // Sends a tensor from rank 0 to the last one, through host memory, and returns what was said of the way.
  std::string staged(int ranks, const char* asked, bool share) {
    run_ranks(ranks, [&](JobTransport& job) {
      const Context context(FakeGpu::the(), 1, share ? 0 : job.rank());
      const auto transport = over(job, context, asked);
      EXPECT_FALSE(transport->ordered());
      const Tensor tensor = context.backend().tensor({{1000}, DType::u8});
      const int last = job.size() - 1;
      if (job.rank() == 0) {
        std::fill_n(tensor.raw(), 1000, std::byte(7));
        transport->send({0, 0}, last, tensor);
      } else if (job.rank() == last) {
        transport->wait(transport->recv({0, 0}, 0, tensor));
        fake_cuda::drain();
        EXPECT_EQ(tensor.raw()[999], std::byte(7)) << asked;
      }
      transport->flush();
      job.barrier();
    });
    return sentence_;
  }

  std::mutex mutex_;
  std::string sentence_;
};

TEST_F(ChosenWay, IsNcclWhereEachRankHasADeviceAndTrainsToTheBitsOfTheCpu) {
  TrainingCase c{.steps = 3, .epoch = true};
  const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  c.device = FakeGpu::the().name();
  c.over = [&](JobTransport& job, const Context& context) { return over(job, context); };
  expect_same(train_on_threads(c, 3, at_random(3), by_policy(Policy::one_f_one_b)), cpu, "NCCL");
  EXPECT_EQ(sentence_, "tensors travel from GPU to GPU by NCCL 2.28.9");
  EXPECT_GT(fake_cuda::nccl_calls(1).size(), 8u);
}

TEST_F(ChosenWay, IsHostMemoryWhereNcclCannotOrIsNotWanted) {
  const std::string begin = "tensors travel through host memory: ";
  EXPECT_EQ(staged(2, "mpi", false), begin + "--transport mpi");
  EXPECT_EQ(staged(2, "auto", true).find(begin + "ranks 0 and 1 on "), 0u) << sentence_;
  EXPECT_NE(sentence_.find("share one GPU, which NCCL refuses"), std::string::npos) << sentence_;
  expect_error([&] { staged(2, "nccl", true); }, {"--transport nccl", "share one GPU", "--transport mpi"});
  fake_cuda::devices({});
  EXPECT_EQ(staged(2, "auto", false),
            begin + "ranks 0 and 1 are threads of one process, which may deadlock over NCCL");
  expect_error([&] { staged(2, "nccl", false); }, {"--transport nccl", "threads of one process"});
}

// A pair that NCCL can't connect is no end of the job, unless NCCL is asked for.
TEST_F(ChosenWay, FallsBackWhereNcclCannotConnect) {
  fake_cuda::nccl({.apart = {0, 2}});
  const std::string sentence = staged(3, "auto", false), begin = "tensors travel through host memory: ";
  // Either of the two may find out first.
  const bool first = sentence.starts_with(begin + "rank 0 on ");
  EXPECT_TRUE(first || sentence.starts_with(begin + "rank 2 on ")) << sentence;
  EXPECT_NE(sentence.find("found NCCL unable: "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("remote process exited"), std::string::npos) << sentence;
  expect_error([&] { staged(3, "nccl", false); }, {"--transport nccl", "found NCCL unable"});
}

// All others wait for it, and give up before the watchdog's limit: it alone is named.
TEST(ChosenWayDeathTest, OnlyTheRankThatHangsWhileItConnectsIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    FakeGpu::the();
    fake_cuda::devices({.threads_are_processes = true});
    const auto hangs_on_one = [](const Context& context, Job& job, const std::function<void()>& look) {
      if (job.rank() != 1) return cuda::make_nccl_stream(context, job, look);
      job.broadcast("", 0);
      job.activity().doing("hanging");
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    };
    register_device_messages("fake_gpu", {.by = "NCCL 2.28.9", .make = hangs_on_one});
    const auto body = [](JobTransport& job) {
      const Context context(FakeGpu::the(), 1, job.rank());
      choose_transport(context, job, "auto");
    };
    run_ranks(3, body, {.watchdog_s = 2});
  };
  EXPECT_EXIT(job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)),
              "antichain: rank 1 has made no progress for .*\"hanging\"");
}

}  // namespace
}  // namespace antichain::test
