// These tests say which device a rank's calls go to, by the CUDA backend itself on stand-ins of the runtime
// (fake_devices.h). Nothing here runs on a device.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "framework/context.h"
#include "framework/cuda/resources.h"
#include "pipeline/cuda/events.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_cuda_backend.h"
#include "tests/pipeline/fakes/fake_devices.h"

namespace antichain::test {
namespace {

class Devices : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(fake_cuda::broken_rules(), std::vector<std::string>());
    fake_cuda::devices({});
  }
  const std::unique_ptr<Backend> gpu_ = make_fake_cuda_backend("fake_cuda");
};

TEST_F(Devices, ARankUsesTheOneOfItsNumberAndNoOther) {
  fake_cuda::devices({.devices = 4, .threads_choose = true, .threads_are_processes = true});
  for (const int local_rank : {0, 3, 5})
    std::thread([&] {
      Context context(*gpu_, 1, local_rank);
      gpu_->enter(context);
      const Tensor x = gpu_->tensor({{1000}}), y = gpu_->tensor({{1000}});
      gpu_->add(context, x, y);
      gpu_->copy(context, y, x);
      EXPECT_EQ(fake_cuda::contexts(), std::set<int>{local_rank % 4});
    }).join();
}

TEST_F(Devices, OneInExclusiveModeIsOneProcesssAlone) {
  const TemporaryFolder folder;
  fake_cuda::devices({.devices = 2, .exclusive = folder.str(), .threads_are_processes = true});
  for (const bool first : {true, false})
    std::thread([&] {
      if (first) {
        EXPECT_NO_THROW(Context(*gpu_, 1, 0));
      } else {
        EXPECT_NO_THROW(Context(*gpu_, 1, 1));
        expect_error([&] { Context(*gpu_, 1, 0); }, {"GPU 0", "exclusive-process"});
      }
    }).join();
}

TEST_F(Devices, StreamsOfMessagesComeBeforeComputing) {
  const Context context(*gpu_);
  const cuda::SideStream messages;
  EXPECT_LT(fake_cuda::priority(messages), fake_cuda::priority(cuda::stream_of(context)));
}

TEST_F(Devices, WhoHasChosenNoneUsesTheFirst) {
  fake_cuda::devices({.threads_choose = true});
  std::thread([&] { gpu_->tensor({{10}}); }).join();
  EXPECT_EQ(fake_cuda::contexts(), std::set<int>{0});
  EXPECT_FALSE(fake_cuda::broken_rules().empty());
}

}  // namespace
}  // namespace antichain::test
