// Tests a context's handle of cuDNN, with stand-ins for the four calls that make it: a handle without a
// stream is never kept.
#include "layers/cuda/cudnn_handle.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/expect_error.h"

namespace {

struct Calls {
  int made = 0, destroyed = 0;
  cudnnStatus_t of_stream = CUDNN_STATUS_SUCCESS;
  cudaStream_t stream = nullptr;
} calls;

}  // namespace

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(intptr_t(++calls.made));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  ++calls.destroyed;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  calls.stream = stream;
  return calls.of_stream;
}
const char* cudnnGetErrorString(cudnnStatus_t) { return "a stand-in's error"; }
void cudnnGetLastErrorString(char* text, size_t) { *text = 0; }

}  // extern "C"

namespace antichain::cuda {
namespace {

TEST(CudnnHandle, IsKeptOnlyWithItsStream) {
  Resources own{.stream = reinterpret_cast<Stream>(intptr_t(7))};
  const auto ask = [&] { return cudnn_of(own); };
  calls.of_stream = CUDNN_STATUS_BAD_PARAM;
  expect_error(ask, {"cuDNN can't take a stream", "a stand-in's error"});
  EXPECT_FALSE(own.cudnn);
  EXPECT_EQ(calls.destroyed, 1);
  calls.of_stream = CUDNN_STATUS_SUCCESS;
  const cudnnHandle_t handle = ask();
  EXPECT_EQ(calls.stream, own.stream);
  EXPECT_EQ(ask(), handle);
  EXPECT_EQ(calls.made, 2);
}

}  // namespace
}  // namespace antichain::cuda
