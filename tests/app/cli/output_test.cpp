// Results go to standard output, for pipes, and everything else goes to standard error. Help is printed for a
// word or for a flag.
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "framework/json.h"
#include "tests/app/program.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;

using Output = ProgramTest;

TEST_F(Output, ADashIsStandardOutputAndThenNothingElseIsThere) {
  for (const std::string name : {"-", "/dev/stdout", "/dev/fd/1"}) {
    const ProgramRun info = run("info --json " + name);
    ASSERT_EQ(info.code, 0) << info.err;
    EXPECT_TRUE(Json::parse(info.out, nullptr, false).contains("models")) << name << info.out;
    EXPECT_THAT(info.err, HasSubstr("resnet18")) << "the table";
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "-"));
  EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout") || !std::filesystem::exists("/dev/stdout"));

  const std::string small = " --model resnet20 --batch 4 --microbatches 2 --steps 1 --dataset synthetic";
  const ProgramRun train = run("train --metrics -" + small);
  ASSERT_EQ(train.code, 0) << train.err;
  std::istringstream lines(train.out);
  int objects = 0;
  for (std::string line; std::getline(lines, line); ++objects)
    EXPECT_TRUE(Json::parse(line, nullptr, false).is_object()) << line;
  EXPECT_EQ(objects, 2) << "a step and the summary";
  EXPECT_THAT(train.err, HasSubstr("step 1/1"));

  expect_refused("train --metrics - --json -" + small, 2,
                 "--metrics and --json can't both be written to standard output");
}

TEST_F(Output, QuietLeavesWhatWasAskedFor) {
  const std::string small = " --model resnet20 --batch 4 --microbatches 2 --steps 1 --dataset synthetic";
  const ProgramRun train = run("train --quiet --results r --json -" + small);
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_EQ(Json::parse(train.out, nullptr, false)["steps"], 1) << "what --json - asked for, and no more";
  for (const std::string& sentence : train.sentences())  // a busy machine makes times doubtful
    EXPECT_THAT(sentence, ::testing::StartsWith("antichain: warning: "));
  const std::string log = read_file(folder_.str() + "/r/log.txt");
  for (const char* part : {"Command", "Plan for resnet20", "step 1/1", "Final state"})
    EXPECT_THAT(log, HasSubstr(part)) << "a log keeps it";

  const ProgramRun talkative =
      run_behind(folder_.str(), "env ONEDNN_VERBOSE=1",
                 "profile --seconds 0.01 --model resnet20 --batch 2 --microbatches 1 --json -");
  EXPECT_TRUE(Json::parse(talkative.out, nullptr, false).is_object()) << "libraries print elsewhere";
  EXPECT_THAT(talkative.err, HasSubstr("onednn_verbose"));

  const ProgramRun profile =
      run("profile --quiet --seconds 0.01 --model resnet20 --batch 2 --microbatches 1 --json p");
  EXPECT_EQ(profile.code, 0) << profile.err;
  EXPECT_EQ(profile.out, "");
  EXPECT_EQ(run("info --model resnet20 --quiet").out, run("info --model resnet20").out);
  const ProgramRun plan = run("plan --profile p --stages 2 --quiet");
  EXPECT_THAT(plan.out, HasSubstr("Predicted step")) << plan.err;
  const ProgramRun json = run("plan --profile p --stages 2 --quiet --json -");
  EXPECT_TRUE(Json::parse(json.out, nullptr, false).contains("stages")) << json.out;
  EXPECT_EQ(json.err, "");
  const ProgramRun refused = run("train --quiet --data-dir nowhere");
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("antichain: "));
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(run("train --quiet --help").out, run("train --help").out);
}

TEST_F(Output, DevicesAndPipesAreWrittenToAndNotReplaced) {
  ran("info --json /dev/null");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  expect_refused("info --json /dev/full", 3, "can't write /dev/full: No space left on device");
}

// The exit code is that of the program, not of its reader.
TEST_F(Output, AReaderThatHasSeenEnoughIsNoFailure) {
  for (const std::string words : {"info --model resnet101", "info --json -", "help train"}) {
    run("version >/dev/null; { timeout 60 '" ANTICHAIN_PROGRAM "' " + words +
        " 2>err; echo $? >code; } | true");
    EXPECT_EQ(read_file(folder_.str() + "/code"), "0\n") << words;
    EXPECT_EQ(read_file(folder_.str() + "/err").find("antichain: "), std::string::npos) << words;
  }
}

TEST_F(Output, InOneLogAnErrorStandsBelowTheHeader) {
  const ProgramRun log = run("train --data-dir nowhere 2>&1");  // both go where standard output goes
  EXPECT_EQ(log.code, 3);
  EXPECT_LT(log.out.find("Command"), log.out.find("antichain: ")) << log.out;
}

TEST_F(Output, HelpAndVersionAreWordsToo) {
  EXPECT_EQ(run("help plan").out, run("plan --help").out);
  EXPECT_EQ(run("help data pack").out, run("data pack --help").out);
  EXPECT_EQ(run("help").out, run("--help").out);
  EXPECT_EQ(run("version").out, run("--version").out);
  EXPECT_FALSE(run("version").out.empty());
  expect_refused("help plam", 2, "did you mean 'plan'");
  expect_refused("hepl", 2, "did you mean 'help'");
}

}  // namespace
}  // namespace antichain
