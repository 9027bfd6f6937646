// std::filesystem throws an error of its own, which ends the program without a sentence of ours. So every
// call that asks the disk takes an error code, or is one of framework/paths.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "tests/repository/repository.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

// Returns the last argument of a call, given where its list begins.
std::string last_argument(const std::string& text, size_t begin) {
  size_t last = begin, at = begin;
  for (int depth = 1; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) break;
    if (text[at] == ',' && depth == 1) last = at + 1;
  }
  const std::string argument = text.substr(last, at - last);
  return argument.substr(std::min(argument.find_first_not_of(" \n"), argument.size()));
}

TEST(ErrorCodes, EveryCallOfFilesystemTakesOne) {
  const std::regex call(
      "(?:fs|std::filesystem)::(?:absolute|canonical|copy|copy_file|create_director(?:y|ies)|current_path|"
      "equivalent|exists|file_size|is_directory|is_empty|is_regular_file|is_symlink|last_write_time|"
      "permissions|read_symlink|remove|remove_all|rename|resize_file|space|status|symlink_status|"
      "weakly_canonical|(?:recursive_)?directory_iterator)(?: \\w+)?\\(");
  int calls = 0;
  for (const char* folder : {"app", "data", "framework", "layers", "models", "partition", "pipeline"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string name = fs::relative(entry.path(), root).string();
      if (entry.path().extension() != ".cpp" || name == "data/image_folder.cpp") continue;
      std::ifstream in(entry.path());
      const std::string text{std::istreambuf_iterator<char>(in), {}};
      for (auto it = std::sregex_iterator(text.begin(), text.end(), call); it != std::sregex_iterator();
           ++it, ++calls) {
        const std::string last = last_argument(text, size_t(it->position() + it->length()));
        const bool is_code = std::regex_match(last, std::regex("\\w+")) &&
                             std::regex_search(text, std::regex("std::error_code " + last + "\\b"));
        EXPECT_TRUE(is_code) << name << ": " << it->str() << "…) throws; framework/paths.h has another";
      }
    }
  EXPECT_GT(calls, 20) << "the sources were not found below " << root;
}

}  // namespace
}  // namespace antichain
