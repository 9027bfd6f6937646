// Lines have at most 110 columns, as .clang-format says, which lets comments be. In documents tables may be
// wider, and so may a line that is code or what a program printed; in scripts, where a line of code is hard
// to break, only comments count, and what documents a function in Python.
//
// Data are exempt, because a program writes them or a line of theirs is one record: kinds of files (see
// `data`) and whole folders (see `folders_of_data`). Every other file counts, whatever its name.
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

enum class Kind { source, script, document, data };

Kind kind_of(const fs::path& file) {
  static const std::set<std::string> scripts{".py",   ".sh",  ".sbatch", ".env", ".cmake",
                                             ".toml", ".def", ".yaml",   ".txt"};
  // Programs write and read profiles, plans and presets. A row of a table is one line, and so are the names
  // of one plan's cuts.
  static const std::set<std::string> data{".json", ".jsonl", ".csv", ".cuts",        ".jpg", ".png",
                                          ".svg",  ".onnx",  ".h5",  ".safetensors", ".pyc"};
  std::string end = file.extension().string();
  if (end == ".in") end = file.stem().extension().string();  // what CMake fills in
  if (scripts.contains(end)) return Kind::script;
  if (data.contains(end)) return Kind::data;
  if (end == ".md") return Kind::document;
  std::ifstream in(file);
  return in.get() == '#' && in.get() == '!' ? Kind::script : Kind::source;
}

// Says of the lines of a script in Python, one after the other, which are part of a function's description.
class Descriptions {
 public:
  bool contains(const std::string& text) {
    bool described = open_ && described_;
    for (size_t at = text.find(quotes); at != std::string::npos; at = text.find(quotes, at + 3)) {
      if (!open_) described_ = at == 0;
      described = described || described_;
      open_ = !open_;
    }
    return described;
  }

 private:
  static constexpr const char* quotes = "\"\"\"";
  bool open_ = false, described_ = false;
};

// Returns the first line that is too wide, as FILE:NUMBER: and its text, or "".
std::string too_wide(const fs::path& file) {
  const Kind kind = kind_of(file);
  std::ifstream in(file);
  bool code = false;  // within ``` of a document
  Descriptions descriptions;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number += 1;
    const std::string text = without_indent(line);
    if (kind == Kind::document && text.starts_with("```")) code = !code;
    const bool indented_code = line.starts_with("    ");
    const bool may_be_wide =
        kind == Kind::script ? !text.starts_with("#") && !descriptions.contains(text)
                             : kind == Kind::document &&
                                   (code || indented_code || text.starts_with("|") || text.starts_with("!["));
    if (!may_be_wide && columns(line) > limit)
      return fs::relative(file, root).string() + ":" + std::to_string(number) + ": " + line;
  }
  return "";
}

TEST(LineWidth, LinesHaveAtMost110Columns) {
  static const std::set<std::string> folders_of_data{
      "tests/fuzz/corpus",     // what fuzzers begin with
      "tests/old_files/kept",  // what an earlier revision wrote
  };
  int files = 0;
  const auto check = [&](const fs::path& file) {
    const std::string name = fs::relative(file, root).string();
    const auto holds_it = [&](const std::string& folder) { return name.starts_with(folder + "/"); };
    if (name == ".git" || kind_of(file) == Kind::data || std::ranges::any_of(folders_of_data, holds_it))
      return;
    files += 1;
    EXPECT_EQ(too_wide(file), "");
  };
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_regular_file()) check(entry.path());
  for (const char* folder : {".ci", "app", "cmake", "data", "docs", "examples", "framework", "layers",
                             "models", "packaging", "partition", "pipeline", "scripts", "slurm", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.is_regular_file()) check(entry.path());
  EXPECT_GT(files, 1400) << "the sources were not found below " << root;
}

}  // namespace
}  // namespace antichain
