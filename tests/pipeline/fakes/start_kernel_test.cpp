// Launches run on stand-ins of CUDA. What a call before them has left as CUDA's last error is not theirs.
#include "framework/cuda/start_kernel.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"

namespace antichain::test {
namespace {

void kernel(int, const float*) {}

// What the host would wait for is not done: CUDA answers with an error that is none.
void leave_an_error_behind() {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  CUstream_st* const stream = fake_cuda::make_stream();
  fake_cuda::hold(stream);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  fake_cuda::let_go(stream);
}

TEST(StartKernel, IsNotBlamedForAnErrorBeforeIt) {
  leave_an_error_behind();
  const int launched = fake_cuda::launched();
  cuda::launch(kernel, 1, 32, nullptr, 5, nullptr);
  EXPECT_EQ(fake_cuda::launched(), launched + 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady) << "whoever made that call has to deal with it";
}

TEST(StartKernel, SaysItsOwnErrorAndLeavesNone) {
  expect_error([] { cuda::launch(kernel, 0, 32, nullptr, 5, nullptr); },
               {"a fake device's error at the launch of", "int, const float*", "CUDA_LAUNCH_BLOCKING=1"});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

// Libraries do look at the last error, so the stand-ins do.
TEST(StartKernel, AStaleErrorIsFoundByTheStandIns) {
  leave_an_error_behind();
  CUstream_st* const stream = fake_cuda::make_stream();
  expect_error([&] { fake_cuda::launch(stream, [] {}); }, {"blamed for an error of another call"});
  fake_cuda::launch(stream, [] {});
  fake_cuda::drain(stream);
}

}  // namespace
}  // namespace antichain::test
