// The doctor looks at folders without changing them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/small_job.h"

namespace antichain {
namespace {

using ::testing::AnyOf;
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

// Without --data-dir it looks for what train would take, and downloads nothing.
TEST_F(DoctorProgram, LooksAtTheData) {
  EXPECT_THAT(run("doctor --data-dir data").out, HasSubstr("in data: 48 images for training"));
  const ProgramRun bad = run("doctor --data-dir truncated");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.out, HasSubstr("problem  data"));
  EXPECT_THAT(run("doctor").out,
              AnyOf(HasSubstr("train would download it"), HasSubstr("images for training")));
}

// With a profile it plans as the run would, and shows the memory of each rank.
TEST_F(DoctorProgram, AddsUpTheMemoryOfAStep) {
  const ProgramRun result = run("doctor --local 2 --profile p.json --microbatches 4");
  EXPECT_THAT(result.out, HasSubstr("Memory of a step")) << result.err;
  EXPECT_THAT(result.out, HasSubstr("a step of the plan takes"));
  EXPECT_EQ(run("doctor --local 2 --profile p.json --stages 3").code, 2);
}

}  // namespace
}  // namespace antichain
