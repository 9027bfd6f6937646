// Tests that foreign text is printed without what a terminal obeys.
#include "framework/printable.h"

#include <gtest/gtest.h>

#include <random>

#include "framework/error.h"
#include "framework/json.h"

namespace antichain {
namespace {

TEST(Printable, WhatATerminalShowsStaysAsItIs) {
  for (const char* text : {"", "layer1.0.conv1", "größer µ … 猫 🐈", "back\\slash \"quotes\"", "--option=1"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\a"), "\\x1b[31mred\\x1b]0;title\\x07");
  EXPECT_EQ(printable("a\nantichain: b\r\tc\x7f"), "a\\x0aantichain: b\\x0d\\x09c\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\u009b2J"), "\\xc2\\x9b2J") << "a control sequence in one character";
  EXPECT_EQ(printable("a\u202eb\u2066c\u200fd\u061c"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6c\\xe2\\x80\\x8fd\\xd8\\x9c");
  EXPECT_EQ(printable("\u200b\ufeff\u2028"), "\\xe2\\x80\\x8b\\xef\\xbb\\xbf\\xe2\\x80\\xa8");
}

TEST(Printable, InvalidUtf8IsEscapedByteForByte) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "a slash in two bytes";
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a pair of UTF-16";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, LongTextsLoseTheirMiddle) {
  const std::string text = printable("begin" + std::string(1'000'000, 'k') + "end");
  EXPECT_LT(text.size(), 260u);
  EXPECT_TRUE(text.starts_with("begin") && text.ends_with("end")) << text;
  EXPECT_NE(text.find("bytes left out"), std::string::npos) << text;
  std::string cats;
  for (int i = 0; i < 100; ++i) cats += "猫";
  for (size_t most = 30; most < 40; ++most)
    EXPECT_EQ(printable(cats, most).find("\\x"), std::string::npos) << "cut within a character";
}

TEST(Printable, OnlyLinesOfTablesAreLines) {
  EXPECT_EQ(printable_lines("too large\n\n  host  MiB\n  one     3\n"),
            "too large\n\n  host  MiB\n  one     3\n");
  EXPECT_EQ(printable_lines("a\nantichain: b"), "a\\x0aantichain: b");
  EXPECT_EQ(printable_lines("a\n\nantichain: b"), "a\n\\x0aantichain: b");
  EXPECT_LT(printable_lines(std::string(1'000'000, 'k')).size(), 1'300u);
}

TEST(Printable, ErrorsAreSo) {
  EXPECT_STREQ(Error("a\x1b[2J", "b\xff").what(), "a\\x1b[2J: b\\xff");
  const std::string key(1'000'000, 'k');
  try {
    JsonReader(parse_json("{\"" + key + "\": \"\\u001b\"}", "file"), "file").done();
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 1'300u);
  }
}

// Whatever the bytes: nothing that a terminal obeys is left, and what is printable already stays so.
TEST(Printable, HoldsForRandomBytes) {
  std::mt19937 random(1);
  const std::string pieces[] = {"\x1b[", "\n",   "\xe2\x80", "\xae", "a",
                                "\xc2",  "\x9b", "猫",       " ",    "\xf0\x9f"};
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string text;
    for (int i = int(random() % 12); i > 0; --i)
      text += random() % 3 ? pieces[random() % std::size(pieces)] : std::string(1, char(random()));
    const std::string shown = printable(text);
    for (const char c : shown) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << shown;
    for (const char* mark : {"\u202e", "\u009b", "\xff"}) ASSERT_EQ(shown.find(mark), std::string::npos);
    ASSERT_EQ(printable(shown), shown);
  }
}

}  // namespace
}  // namespace antichain
