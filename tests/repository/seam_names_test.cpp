// A seam holds where code does not ask by name for something that stands in a table: the pipeline knows no
// operator, no input of a network and no optimiser, only the table of engines knows which come in modules,
// and only the table of policies names schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/repository/repository.h"

namespace fs = std::filesystem;

namespace antichain {
namespace {

// Returns the line without its comment.
std::string code_of(const std::string& line) { return line.substr(0, line.find("//")); }

// Returns whether a string of the code is the name, or has it as one of its words.
enum class As { whole, word };

// Returns the files below a folder whose strings say one of these names, but none whose path has `except`.
std::vector<std::string> files_that_say(const std::string& folder, const std::vector<std::string>& literals,
                                        As as = As::whole, const std::string& except = "") {
  const std::string before = as == As::whole ? "\"" : "\"([^\"]*[^\"a-z-])?";
  const std::string after = as == As::whole ? "\"" : "([^\"a-z-][^\"]*)?\"";
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string name = fs::relative(entry.path(), root).string();
    const std::string kind = entry.path().extension().string();
    if ((kind != ".h" && kind != ".cpp") || (!except.empty() && name.find(except) != std::string::npos))
      continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      for (const std::string& literal : literals)
        if (line.find(literal) != std::string::npos &&
            std::regex_search(code_of(line), std::regex(before + literal + after)))
          found.push_back(name + ": \"" + literal + "\"");
  }
  std::ranges::sort(found);
  return found;
}

using Found = std::vector<std::string>;

TEST(SeamNames, ThePipelineNamesNoOperatorAndNoInput) {
  EXPECT_EQ(files_that_say("pipeline", {"conv2d", "batch_norm", "linear", "relu", "images", "labels"}),
            Found{});
}

TEST(SeamNames, NothingBetweenTheOptionsAndTheEnginesNamesAnOptimiser) {
  for (const char* folder : {"data", "partition", "pipeline"})
    EXPECT_EQ(files_that_say(folder, {"framework/sgd.h", "momentum", "sgd"}), Found{}) << folder;
  EXPECT_EQ(files_that_say("framework", {"momentum", "sgd"}),
            (Found{"framework/cuda/update.cpp: \"sgd\"", "framework/prediction.cpp: \"momentum\"",
                   "framework/sgd.cpp: \"momentum\"", "framework/sgd.h: \"sgd\""}));
}

TEST(SeamNames, OnlyTheTableOfEnginesNamesTheModuleOfADevice) {
  for (const char* folder : {"app", "data", "layers", "models", "partition", "pipeline"})
    EXPECT_EQ(files_that_say(folder, {"cuda"}, As::word, "/cuda/"), Found{}) << folder;
  EXPECT_EQ(files_that_say("framework", {"cuda"}, As::word, "/cuda/"),
            (Found(4, "framework/module.cpp: \"cuda\"")));
}

TEST(SeamNames, OnlyTheTableOfPoliciesNamesSchedules) {
  const std::vector<std::string> names = {"1f1b",        "gpipe",        "zb-h1",  "zb-h2",
                                          "interleaved", "zb-v",         "v-half", "v-min",
                                          "dualpipe-v",  "forward-only", "2bw"};
  for (const char* folder : {"app", "framework", "models", "partition", "pipeline"})
    EXPECT_EQ(files_that_say(folder, names, As::word, "schedule/policy.cpp"), Found{}) << folder;
  // An order of rotary positions has the name of a schedule.
  EXPECT_EQ(files_that_say("layers", names), Found{"layers/rotary.h: \"interleaved\""});
}

}  // namespace
}  // namespace antichain
