#include "app/table.h"

#include <gtest/gtest.h>

#include "framework/error.h"

namespace antichain {
namespace {

TEST(Table, AlignsByCharactersNotBytes) {
  Table table({{"name", Table::Align::left}, {"ms"}});
  table.add({"µ", "1.50"});
  table.add({"conv1", "12.25"});
  EXPECT_EQ(table.str(),
            "  name      ms\n"
            "  -----  -----\n"
            "  µ       1.50\n"
            "  conv1  12.25\n");
  EXPECT_THROW(table.add({"one cell"}), Error);
}

TEST(Table, Numbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(11173962), "11,173,962");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(milliseconds(0.0123456), "12.35");
  EXPECT_EQ(mebibytes(3 << 19), "1.50");
  EXPECT_EQ(percent(0.125), "12.5");
}

}  // namespace
}  // namespace antichain
