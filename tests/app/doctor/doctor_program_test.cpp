// The doctor looks at folders without changing them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/small_job.h"

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

}  // namespace
}  // namespace antichain
