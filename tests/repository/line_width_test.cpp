// Lines have at most 110 columns, as .clang-format says, which lets comments be. In documents tables may be
// wider, and so may a line that is code or what a program printed; in scripts, where a line of code is hard
// to break, only comments count.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/repository/repository.h"

namespace fs = std::filesystem;

namespace antichain {
namespace {

constexpr size_t limit = 110;

// Counts characters: bytes of UTF-8 that continue one do not count.
size_t columns(const std::string& line) {
  return size_t(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string without_indent(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : line.substr(begin);
}

enum class Kind { source, script, document, other };

Kind kind_of(const fs::path& file) {
  static const std::set<std::string> sources{".h", ".cpp", ".cu", ".inc"};
  static const std::set<std::string> scripts{".py", ".sh", ".cmake", ".batch", ".txt"};
  const std::string end = file.extension().string();
  if (sources.contains(end)) return Kind::source;
  if (scripts.contains(end)) return Kind::script;
  return end == ".md" ? Kind::document : Kind::other;
}

// Returns the first line that is too wide, as FILE:NUMBER: and its text, or "".
std::string too_wide(const fs::path& file) {
  const Kind kind = kind_of(file);
  std::ifstream in(file);
  bool code = false;  // within ``` of a document
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number += 1;
    const std::string text = without_indent(line);
    if (kind == Kind::document && text.starts_with("```")) code = !code;
    const bool indented_code = line.starts_with("    ");
    const bool may_be_wide =
        kind == Kind::script ? !text.starts_with("#")
                             : kind == Kind::document &&
                                   (code || indented_code || text.starts_with("|") || text.starts_with("!["));
    if (!may_be_wide && columns(line) > limit)
      return fs::relative(file, root).string() + ":" + std::to_string(number) + ": " + line;
  }
  return "";
}

TEST(LineWidth, LinesHaveAtMost110Columns) {
  int files = 0;
  const auto check = [&](const fs::path& file) {
    if (kind_of(file) == Kind::other) return;
    files += 1;
    EXPECT_EQ(too_wide(file), "");
  };
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_regular_file()) check(entry.path());
  for (const char* folder : {"app", "cmake", "data", "docs", "examples", "framework", "layers", "models",
                             "partition", "pipeline", "scripts", "slurm", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file()) check(entry.path());
  EXPECT_GT(files, 500) << "the sources were not found below " << root;
}

}  // namespace
}  // namespace antichain
