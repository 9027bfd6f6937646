// A test that needs a GPU is skipped by name where there is none.
#pragma once

#include <gtest/gtest.h>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/device/device_streams.h"

namespace antichain::test {

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      gpu = &backend("cuda");
    } catch (const Error& error) {
      GTEST_SKIP() << "needs a CUDA device: " << error.what();
    }
    streams = device_streams("cuda");
    ASSERT_NE(streams, nullptr) << "the module brings its streams in";
    ASSERT_TRUE(streams->step) << "the module brings its step in";
  }

  const Backend* gpu = nullptr;
  const DeviceStreams* streams = nullptr;
};

}  // namespace antichain::test
