// In these whole steps streams and calls wait for more than they were told to, as on a real device
// (fake_cuda.h): streams share queues, and calls wait for a device or for all. Every step ends, with the
// CPU's bits. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <thread>

#include "framework/error.h"
#include "tests/pipeline/fakes/on_fake_gpu.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/transport/nccl_among.h"

namespace antichain::test {
namespace {

using fake_cuda::StreamRules;
using fake_cuda::WaitsFor;

TrainingRun train_cut(const TrainingCase& c, int ranks) {
  return train_on_threads(c, ranks, at_random(unsigned(10 + ranks)), by_policy(Policy::one_f_one_b));
}

class StreamsThatWait : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    fake_cuda::reset(1);
  }

  const TrainingCase small{.steps = 3};

  // Expects the bits of the CPU on 3 ranks, by each way.
  void expect_steps_end(StreamRules rules, bool threads = false) {
    const TrainingRun cpu = train_cut(small, 1);
    for (const bool nccl : {true, false}) {
      if (nccl && threads) continue;
      const TrainingCase c = on_fake_gpu(small, 1, nccl ? over_nccl : staged);
      fake_cuda::streams(rules);
      expect_same(train_cut(c, 3), cpu, nccl ? "NCCL" : "host memory");
    }
  }
};

TEST_F(StreamsThatWait, ForOthersOfTheirQueue) {
  for (const int queues : {1, 2, 8}) {
    SCOPED_TRACE(queues);
    expect_steps_end({.queues = queues});
  }
}

TEST_F(StreamsThatWait, InCallsThatWaitForTheDevice) {
  expect_steps_end({.calls_wait_for = WaitsFor::its_device});
}

TEST_F(StreamsThatWait, InCallsThatWaitForAllDevicesOfAProcess) {
  expect_steps_end({.calls_wait_for = WaitsFor::all_devices}, true);
}

using Rules = std::vector<std::string>;

cudaStream_t recording_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  return stream;
}

// The stand-in itself notes what CUDA would refuse, or would make every stream wait for.
TEST(StreamsOfTheStandIn, NoteTheLegacyStreamWhileOneRecords) {
  fake_cuda::reset(1);
  const cudaStream_t stream = recording_stream();
  float from = 1, to = 0;
  EXPECT_EQ(cudaMemcpyAsync(&to, &from, sizeof to, cudaMemcpyDefault, nullptr), cudaSuccess);
  EXPECT_EQ(fake_cuda::broken_rules(), Rules{"the legacy stream is used"});
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  fake_cuda::reset(1);
}

TEST(StreamsOfTheStandIn, NoteAStreamThatIsDestroyedWhileItRecords) {
  fake_cuda::reset(1);
  const cudaStream_t stream = recording_stream();
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(fake_cuda::broken_rules(), Rules{"a stream is destroyed that records"});
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  fake_cuda::reset(1);
}

TEST(StreamsOfTheStandIn, NoteARecordingThatIsLeftOpen) {
  fake_cuda::reset(1);
  std::jthread([] { recording_stream(); }).join();
  EXPECT_EQ(fake_cuda::broken_rules(), Rules{"a recording is left open at its thread's end"});
  fake_cuda::reset(1);
}

// This is why threads never go by NCCL: a rank's call waits for a device that waits for what this rank has
// yet to send.
TEST(StreamsThatWaitDeathTest, ThreadsOverNcclWaitForEachOther) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto job = [] {
    const TrainingCase c = on_fake_gpu({.steps = 3, .watchdog_s = 3}, 1, over_nccl);
    fake_cuda::streams({.calls_wait_for = WaitsFor::all_devices});
    train_cut(c, 3);
  };
  EXPECT_EXIT(job(), ::testing::ExitedWithCode(int(ExitCode::watchdog)), "has made no progress");
}

}  // namespace
}  // namespace antichain::test
