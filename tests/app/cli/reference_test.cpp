// Every option of every command is in each reference, and --help shows the dozen that matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/app/program.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Reference : public ProgramTest {
 protected:
  // Returns what stands first in a help's lines, two blanks from the left.
  std::vector<std::string> heads(const std::string& words) const {
    std::vector<std::string> found;
    std::istringstream lines(ran(words));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream entry(line);
      std::string head;
      if (line.starts_with("  ") && line[2] != ' ' && entry >> head) found.push_back(head);
    }
    return found;
  }
  std::vector<std::string> options(const std::string& words) const {
    std::vector<std::string> found = heads(words);
    std::erase_if(found, [](const std::string& head) { return !head.starts_with("--"); });
    return found;
  }
  std::vector<std::string> commands() const {
    std::vector<std::string> found;
    for (const std::string& command : heads("--help")) {
      if (command == "help" || command == "version" || command == "antichain") continue;
      if (command != "data") found.push_back(command);
    }
    for (const char* command : {"data pack", "data tokens", "data show", "data batches"})
      found.emplace_back(command);
    return found;
  }
  // Returns the part of a text from a line that holds `begin` to the next line that begins with `end`.
  static std::string part(const std::string& text, const std::string& begin, const std::string& end) {
    const size_t at = text.find(begin);
    EXPECT_NE(at, std::string::npos) << begin;
    return at == std::string::npos ? "" : text.substr(at, text.find("\n" + end, at) - at);
  }
};

TEST_F(Reference, HasEveryOptionOfEveryCommand) {
  const std::string page = ran("reference markdown"), man = ran("reference man"),
                    bash = ran("reference bash");
  EXPECT_GT(commands().size(), 15u);
  for (const std::string& command : commands()) {
    const std::string in_page = part(page, "## antichain " + command + "\n", "## "),
                      in_man = part(man, ".SH antichain " + command + "\n", ".SH "),
                      in_bash = part(bash, "    ' " + command + "')\n", "    '");
    const std::vector<std::string> all = options(command + " --help-all");
    EXPECT_GE(all.size(), 2u) << command;
    for (const std::string& option : all) {
      std::string escaped;
      for (const char c : option) escaped += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_THAT(in_page, HasSubstr("| `" + option)) << command;
      EXPECT_THAT(in_man, HasSubstr(escaped)) << command;
      EXPECT_THAT(in_bash, HasSubstr(" " + option)) << command;
    }
  }
}

TEST_F(Reference, HelpShowsTheDozenThatMatters) {
  for (const std::string& command : commands()) {
    const std::vector<std::string> all = options(command + " --help-all"),
                                   first = options(command + " --help");
    EXPECT_LE(first.size(), 16u) << command;
    for (const std::string& option : first)
      EXPECT_NE(std::ranges::find(all, option), all.end()) << command << " " << option;
    const std::string rest = "antichain " + command + " --help-all lists all ";
    EXPECT_EQ(ran(command + " --help").find(rest) != std::string::npos, first.size() < all.size()) << command;
    const std::string whole = ran(command + " --help-all");
    EXPECT_THAT(whole, Not(HasSubstr(rest)));
    std::istringstream lines(ran("--help") + ran("data --help") + whole);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 80) << line;
  }
  EXPECT_GT(options("train --help-all").size(), 80u);
  EXPECT_EQ(ran("--help-all"), ran("--help"));
}

TEST_F(Reference, IsOfOneOfItsForms) {
  expect_refused("reference html", 2, "there is no form 'html'");
  expect_refused("reference", 2, "FORM is required");
  ran("reference man --out antichain.1");
  EXPECT_THAT(ran("reference man"), HasSubstr(".TH ANTICHAIN 1"));
}

}  // namespace
}  // namespace antichain
