// Each line of a list of sources or of linked libraries in CMakeLists.txt has one name, and the lines are
// sorted. So a new name is one line in a diff, and a reader finds it by the alphabet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/repository/repository.h"

namespace fs = std::filesystem;

namespace antichain {
namespace {

struct Word {
  std::string text;
  int line;
};

struct Command {
  std::string name;
  std::vector<Word> arguments;
};

// Returns the commands of a CMakeLists.txt. Arguments in quotes are left out, because no list has them.
std::vector<Command> commands_of(const std::string& text) {
  std::vector<Command> commands;
  std::string word, before;  // what is being read, and the word before a parenthesis
  int line = 1, open = 0;
  const auto end_word = [&] {
    if (!word.empty() && open > 0) commands.back().arguments.push_back({word, line});
    if (!word.empty()) before = word;
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#' || c == '"') {
      end_word();
      for (++i; i < text.size() && text[i] != (c == '#' ? '\n' : '"'); ++i) {
        if (text[i] == '\\') ++i;
        if (text[i] == '\n') line += 1;
      }
    } else if (c == '(' || c == ')' || std::isspace(static_cast<unsigned char>(c))) {
      end_word();
      if (c == '(' && ++open == 1) commands.push_back({before, {}});
      if (c == ')') open -= 1;
    } else {
      word += c;
    }
    if (i < text.size() && text[i] == '\n') line += 1;
  }
  return commands;
}

bool is_keyword(const std::string& word) {
  return std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
}

bool is_source(const std::string& word) { return word.ends_with(".cpp") || word.ends_with(".cu"); }

// Returns the command's lists: neighbouring sources, and what stands behind a keyword for libraries.
std::vector<std::vector<Word>> lists_of(const Command& command) {
  std::vector<std::vector<Word>> lists;
  bool libraries = false, goes_on = false;
  for (const Word& word : command.arguments) {
    if (is_keyword(word.text)) libraries = command.name == "target_link_libraries" || word.text == "LINK";
    const bool belongs = !is_keyword(word.text) && (libraries || is_source(word.text));
    if (belongs && !goes_on) lists.emplace_back();
    if (belongs) lists.back().push_back(word);
    goes_on = belongs;
  }
  return lists;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Returns the first line that is not as it should be, as FILE:NUMBER: and what is wrong, or "".
std::string unsorted(const std::string& file, const std::string& text) {
  for (const Command& command : commands_of(text))
    for (const std::vector<Word>& list : lists_of(command))
      for (size_t i = 1; i < list.size(); ++i) {
        const Word &last = list[i - 1], &word = list[i];
        const std::string where = file + ":" + std::to_string(word.line) + ": " + word.text;
        if (word.line == last.line) return where + " is on the line of " + last.text;
        if (lower_case(word.text) < lower_case(last.text)) return where + " stands after " + last.text;
      }
  return "";
}

TEST(SourceLists, NameOneFileALineAndAreSorted) {
  int files = 0;
  const auto check = [&](const fs::path& file) {
    files += 1;
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_EQ(unsorted(fs::relative(file, root).string(), text), "");
  };
  check(root / "CMakeLists.txt");
  for (const char* folder :
       {"app", "data", "examples", "framework", "layers", "models", "partition", "pipeline", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().filename() == "CMakeLists.txt") check(entry.path());
  EXPECT_GT(files, 40) << "the lists were not found below " << root;
}

TEST(SourceLists, TheRuleCatchesWhatItMust) {
  EXPECT_EQ(unsorted("", "add_executable(a\n    ${of}/b.cpp\n    a.cpp  # first\n    b.cu)\n"), "");
  EXPECT_EQ(unsorted("", "target_link_libraries(a PRIVATE\n  antichain\n  DNNL::dnnl\n  fmt::fmt)\n"), "");
  EXPECT_EQ(unsorted("", "file(GENERATE OUTPUT b.cpp CONTENT \"a.cpp (\\\" a.cpp\")\n"), "");
  EXPECT_NE(unsorted("", "add_executable(a ${of}/a.cpp b.cpp)\n"), "");
  EXPECT_NE(unsorted("", "add_executable(a\n    b.cpp\n    a.cpp)\n"), "");
  EXPECT_NE(unsorted("", "antichain_room(a\n  SOURCES\n    a.cpp\n    b.cpp c.cpp\n  LINK d)\n"), "");
  EXPECT_NE(unsorted("", "antichain_room(a\n  SOURCES\n    a.cpp\n  LINK c d)\n"), "");
  EXPECT_NE(unsorted("", "target_link_libraries(a PUBLIC\n  fmt::fmt\n  antichain)\n"), "");
}

}  // namespace
}  // namespace antichain
