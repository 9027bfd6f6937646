// These tests are about what is said on standard error, and about the colours of both streams.
#include "app/cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace antichain {
namespace {

// Tests have no terminal: CLICOLOR_FORCE asks for colours all the same.
struct Environment {
  explicit Environment(std::initializer_list<std::pair<const char*, const char*>> variables) {
    for (const char* name : names) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  }
  ~Environment() {
    for (const char* name : names) ::unsetenv(name);
  }
  static constexpr const char* names[] = {"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"};
};

TEST(Sentences, AreOneLineWhereThereIsNoTerminal) {
  const Environment plain({});
  const std::string longest(300, 'x');
  EXPECT_EQ(shaped(Tone::note, longest), "antichain: " + longest + "\n");
  EXPECT_EQ(shaped(Tone::warning, "two words"), "antichain: warning: two words\n");
  EXPECT_EQ(shaped(Tone::error, "no memory\n\n  a table\n"), "antichain: no memory\n\n  a table\n\n");
}

TEST(Sentences, ColoursAreThoseOfTheHead) {
  const Environment coloured({{"CLICOLOR_FORCE", "1"}});
  EXPECT_EQ(shaped(Tone::warning, "two words"), "antichain: \x1b[1;33mwarning:\x1b[0m two words\n");
  EXPECT_EQ(shaped(Tone::error, "two words"), "\x1b[1;31mantichain:\x1b[0m two words\n");
}

TEST(Colours, FollowTheEnvironment) {
  {
    const Environment plain({});
    EXPECT_EQ(styled(Style::heading, "a"), "a");
  }
  {
    const Environment forced({{"CLICOLOR_FORCE", "1"}});
    EXPECT_EQ(styled(Style::heading, "a"), "\x1b[1ma\x1b[0m");
    EXPECT_EQ(styled(Style::plain, "a"), "a");
  }
  {
    const Environment refused({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}});
    EXPECT_EQ(styled(Style::heading, "a"), "a") << "NO_COLOR has the last word";
  }
}

}  // namespace
}  // namespace antichain
