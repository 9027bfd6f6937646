// These tests use the program as a library. A model that can't be added to the shipped ones is answered by
// one sentence and an exit code. (tests/scripts/own_model.sh tests what works, on a program of its own. Here
// a model that was added would stay for the other tests.)
#include "app/run.h"

#include <gtest/gtest.h>

#include "framework/error.h"

namespace antichain {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run_words(std::vector<std::string> words, const std::vector<NamedModel>& models) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = run(int(argv.size()), argv.data(), models);
  std::fflush(stdout);
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

Graph copy_of_resnet20(const ModelOptions& options) { return make_model("resnet20", options); }

TEST(Run, SaysInOneSentenceWhichModelItRefuses) {
  const Outcome taken = run_words({"info"}, {{"resnet18", copy_of_resnet20}});
  EXPECT_EQ(taken.code, int(ExitCode::usage));
  EXPECT_EQ(taken.err, "antichain: there is already a model 'resnet18': choose another name\n");
  EXPECT_EQ(taken.out, "");
  const Outcome nameless = run_words({"info"}, {{"", copy_of_resnet20}});
  EXPECT_EQ(nameless.code, int(ExitCode::usage));
  EXPECT_EQ(nameless.err, "antichain: a model of one's own has no name: write {\"name\", function}\n");
}

// A program of one's own is called by its own name.
TEST(Run, HelpNamesTheProgram) {
  const Outcome all = run_words({"--help"}, {});
  EXPECT_EQ(all.code, 0);
  EXPECT_TRUE(all.out.starts_with("program: Profile, plan")) << all.out;
  const Outcome train = run_words({"train", "--help"}, {});
  for (const std::string& text : {all.out, train.out}) {
    EXPECT_NE(text.find("program train"), std::string::npos) << text;
    for (const char* foreign : {"antichain train", "antichain profile", "antichain plan"})
      EXPECT_EQ(text.find(foreign), std::string::npos) << text;
  }
  const Outcome mistyped = run_words({"train", "--zzzzzzzz"}, {});
  EXPECT_NE(mistyped.err.find("see program train --help"), std::string::npos) << mistyped.err;
}

}  // namespace
}  // namespace antichain
