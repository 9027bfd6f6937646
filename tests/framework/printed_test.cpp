// Tests the log of a run: it holds what a terminal would show in the end, as plain text.
#include "framework/say.h"

#include <gtest/gtest.h>

namespace antichain {
namespace {

TEST(PlainText, HasNoColourCodes) {
  PlainText text;
  EXPECT_EQ(text.add("\x1b[1mPlan\x1b[0m\n\x1b[1;33mwarn"), "Plan\n");
  EXPECT_EQ(text.add("ing:\x1b["), "") << "a code may come in two parts";
  EXPECT_EQ(text.add("0m done\n"), "warning: done\n");
}

TEST(PlainText, HasABarAsItWasLeft) {
  PlainText text;
  EXPECT_EQ(text.add("\r\x1b[K[=  ] 1/3\r\x1b[K[== ] 2/3"), "");
  EXPECT_EQ(text.add("\r\x1b[Kepoch 1 done\n"), "epoch 1 done\n");
}

}  // namespace
}  // namespace antichain
