// Tests numbers as text.
#include "app/cli/number_text.h"

#include <gtest/gtest.h>

namespace antichain {
namespace {

TEST(NumberText, IsThatOfTables) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(11173962), "11,173,962");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(milliseconds(0.0123456), "12.35");
  EXPECT_EQ(mebibytes(3 << 19), "1.50");
  EXPECT_EQ(percent(0.125), "12.5");
  EXPECT_EQ(counted(1, "stage"), "1 stage");
  EXPECT_EQ(counted(0, "stage"), "0 stages");
  EXPECT_EQ(counted(2000, "micro-batch", "micro-batches"), "2,000 micro-batches");
  EXPECT_EQ(milliseconds_or_dash(0), "-");
  EXPECT_EQ(milliseconds_or_dash(1e-9), "0.00");
  EXPECT_EQ(mebibytes_or_dash(1 << 20), "1.00");
}

}  // namespace
}  // namespace antichain
