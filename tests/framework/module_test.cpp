// Modules that are not there are a reason, not a crash.
#include "framework/module.h"

#include <gtest/gtest.h>

#include "framework/backend.h"
#include "framework/error.h"

namespace antichain {
namespace {

TEST(Module, AMissingOneIsAReasonAndNoCrash) {
  EXPECT_NE(load_module("nowhere").find("libantichain_nowhere.so can't be loaded"), std::string::npos);
}

TEST(Module, CudaWithoutAModuleOrADeviceIsOneSentence) {
  try {
    backend("cuda");
    GTEST_SKIP() << "this machine has a CUDA device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()).find("there is no device 'cuda': libantichain_cuda.so"), 0u)
        << error.what();
  }
}

}  // namespace
}  // namespace antichain
