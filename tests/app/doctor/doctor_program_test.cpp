// The doctor looks at folders without changing them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/small_job.h"
#include "tests/variable.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using DoctorProgram = SmallJob;

TEST_F(DoctorProgram, LooksWhereAFolderWouldBeMade) {
  for (const std::string folder : {"new", "new/of/it/", "data"}) {
    const ProgramRun result = run("doctor --checkpoint " + folder);
    EXPECT_THAT(result.out, HasSubstr("written and synced")) << folder << result.err;
    EXPECT_EQ(std::filesystem::exists(path("new")), false) << "it leaves nothing";
  }
  EXPECT_THAT(run("doctor --checkpoint /proc/new").out, HasSubstr("can't write to /proc"));
}

// Without --data-dir it looks at what train would take. It downloads nothing.
TEST_F(DoctorProgram, LooksAtTheDataThatTrainWouldTake) {
  const Variable cache("XDG_CACHE_HOME", path("nothing"));
  const Variable folder("CIFAR10_DIR", path("data"));
  EXPECT_THAT(run("doctor").out, HasSubstr("images for training"));
  const Variable nowhere("CIFAR10_DIR", "/nowhere");
  EXPECT_THAT(run("doctor").out, HasSubstr("/nowhere"));
  const Variable none("CIFAR10_DIR", "");
  EXPECT_THAT(run("doctor").out, HasSubstr("train would download it"));
}

}  // namespace
}  // namespace antichain
