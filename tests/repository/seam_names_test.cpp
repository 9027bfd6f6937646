// A seam holds where code below it does not ask for one of what lies above by its name: the pipeline knows no
// operator, no input of a network and no optimiser, and only the table of engines knows which come in
// modules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/repository/repository.h"

namespace fs = std::filesystem;

namespace antichain {
namespace {

// Returns the line without its comment.
std::string code_of(const std::string& line) { return line.substr(0, line.find("//")); }

// Returns the files below a folder whose code has one of these strings, but none in folders called `except`.
std::vector<std::string> files_that_say(const std::string& folder, const std::vector<std::string>& literals,
                                        const std::string& except = "") {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string name = fs::relative(entry.path(), root).string();
    const std::string kind = entry.path().extension().string();
    if ((kind != ".h" && kind != ".cpp") || (!except.empty() && name.find(except) != std::string::npos))
      continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      for (const std::string& literal : literals)
        if (code_of(line).find('"' + literal + '"') != std::string::npos)
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
            (Found{"framework/cuda/update.cpp: \"sgd\"", "framework/sgd.cpp: \"momentum\"",
                   "framework/sgd.h: \"sgd\""}));
}

TEST(SeamNames, OnlyTheTableOfEnginesNamesTheModuleOfADevice) {
  for (const char* folder : {"app", "data", "layers", "models", "partition", "pipeline"})
    EXPECT_EQ(files_that_say(folder, {"cuda", "cuda:tf32"}, "/cuda/"), Found{}) << folder;
  EXPECT_EQ(files_that_say("framework", {"cuda"}, "/cuda/"),
            (Found{"framework/engine_modules.cpp: \"cuda\"", "framework/engine_modules.cpp: \"cuda\""}));
}

}  // namespace
}  // namespace antichain
