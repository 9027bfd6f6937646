// Tests how tables and hanging texts fit a line.
#include "app/cli/table.h"

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

TEST(Table, UnitsStandInASecondLine) {
  Table table({{"name", Table::Align::left}, {"forward\nms"}});
  table.add({"convolution", "1.50"});
  EXPECT_EQ(table.str(),
            "  name         forward\n"
            "                    ms\n"
            "  -----------  -------\n"
            "  convolution     1.50\n");
}

TEST(Table, NarrowLinesHaveNarrowGaps) {
  Table table({{"name", Table::Align::left}, {"ms"}});
  table.add({"convolution", "1.50"});
  EXPECT_EQ(table.str(18),
            "  name          ms\n"
            "  ----------- ----\n"
            "  convolution 1.50\n");
}

TEST(Table, ColumnsThatMayStandBelowLeaveTheRow) {
  Table table({{"stage"}, {"nodes\nof it", Table::Align::left, Table::Role::below}, {"ms"}});
  table.add({"0", "3: convolution to relu", "1.50"});
  EXPECT_EQ(table.str(40),
            "  stage  nodes                     ms\n"
            "         of it\n"
            "  -----  ----------------------  ----\n"
            "      0  3: convolution to relu  1.50\n");
  EXPECT_EQ(table.str(30),
            "  stage    ms\n"
            "  -----  ----\n"
            "      0  1.50\n"
            "         nodes 3: convolution to relu\n")
      << "names are whole, however narrow the line";
}

TEST(Table, WideOnesComeInPartsThatBeginWithTheirKeysAndNothingIsCut) {
  Table table(
      {{"node"}, {"name", Table::Align::left, Table::Role::key}, {"forward"}, {"backward"}, {"memory"}});
  table.add({"0", "a-long-convolution", "123456.50", "2.50", "17.00"});
  EXPECT_EQ(table.str(40),
            "  node  name                  forward\n"
            "  ----  ------------------  ---------\n"
            "     0  a-long-convolution  123456.50\n"
            "\n"
            "  node  name                backward\n"
            "  ----  ------------------  --------\n"
            "     0  a-long-convolution      2.50\n"
            "\n"
            "  node  name                memory\n"
            "  ----  ------------------  ------\n"
            "     0  a-long-convolution   17.00\n");
  EXPECT_EQ(table.str(1), table.str(40)) << "a column a part is the least";
}

TEST(Table, CodesOfColoursTakeNoPlace) {
  EXPECT_EQ(hanging("\x1b[1;32mok\x1b[0m", 4, "two", 13), "\x1b[1;32mok\x1b[0m  two\n");
}

TEST(Table, NamesOfFilesAreShownPrintable) {
  Table table({{"name", Table::Align::left}});
  table.add({"\x1b[2Jx\n"});
  table.add({"größere Katzen"});
  EXPECT_EQ(table.str(),
            "  name\n"
            "  --------------\n"
            "  \\x1b[2Jx\\x0a\n"
            "  größere Katzen\n");
}

TEST(Table, HangingTextWrapsAtBlanks) {
  EXPECT_EQ(hanging("one", 5, "two three four", 13), "one  two\n     three\n     four\n");
  EXPECT_EQ(hanging("longer", 5, "two", 13), "longer\n     two\n");
  EXPECT_EQ(hanging("µ", 3, "two three", 12), "µ  two three\n") << "characters count, not bytes";
  EXPECT_EQ(hanging("a", 3, "unbreakable", 5), "a  unbreakable\n") << "a word is never cut";
  EXPECT_EQ(hanging("", 0, "two three four", 9), "two three\nfour\n");
}

}  // namespace
}  // namespace antichain
