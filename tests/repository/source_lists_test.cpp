// Each line of a list of sources in CMakeLists.txt names one file, and the lines are sorted. So a new file is
// one line in a diff, and a reader finds a file by its name.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/repository/repository.h"

namespace fs = std::filesystem;

namespace antichain {
namespace {

// Returns the source that the line of a list names, or "" where the line is something else.
std::string source_of(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == 0 || begin == std::string::npos || line.find('(') != std::string::npos) return "";
  const std::string name = line.substr(begin, line.find_last_not_of(')') + 1 - begin);
  return name.ends_with(".cpp") || name.ends_with(".cu") ? name : "";
}

// Returns the first line that is not as it should be, as FILE:NUMBER: and what is wrong, or "".
std::string unsorted(const fs::path& file) {
  std::ifstream in(file);
  std::string last;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number += 1;
    const std::string source = source_of(line);
    const std::string where = fs::relative(file, root).string() + ":" + std::to_string(number) + ": ";
    if (source.find(' ') != std::string::npos) return where + "two names on a line";
    if (!source.empty() && source < last) return where + source + " stands after " + last;
    last = source;
  }
  return "";
}

TEST(SourceLists, NameOneFileALineAndAreSorted) {
  int files = 0;
  for (const char* folder :
       {"app", "data", "framework", "layers", "models", "partition", "pipeline", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().filename() == "CMakeLists.txt") {
        files += 1;
        EXPECT_EQ(unsorted(entry.path()), "");
      }
  EXPECT_GT(files, 40) << "the lists were not found below " << root;
}

}  // namespace
}  // namespace antichain
