// Tests sizes and times as people write them.
#include "framework/units.h"

#include <gtest/gtest.h>

namespace antichain {
namespace {

TEST(Units, OfSizes) {
  for (const auto& [text, bytes] :
       {std::pair("0", 0.), std::pair("4096", 4096.), std::pair("10M", 10. * (1 << 20)),
        std::pair("10m", 10. * (1 << 20)), std::pair("64GiB", 64. * (1 << 30)),
        std::pair("64Gi", 64. * (1 << 30)), std::pair("12GB", 12e9), std::pair("1.5 kB", 1500.),
        std::pair("7 B", 7.), std::pair("2T", 2199023255552.)})
    EXPECT_EQ(parse_size(text), bytes) << text;
  for (const char* bad :
       {"", "M", "-1", "-1M", "10X", "10MM", "10MiBs", "1 0", "nan", "inf", "0x10", " 1", "1e999"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(Units, OfTimes) {
  for (const auto& [text, seconds] :
       {std::pair("90", 90.), std::pair("1h30m", 5400.), std::pair("90min", 5400.), std::pair("2h", 7200.),
        std::pair("1.5s", 1.5), std::pair("250ms", .25), std::pair("20us", 20e-6), std::pair("1d", 86400.)})
    EXPECT_DOUBLE_EQ(parse_time(text).value_or(-1), seconds) << text;
  for (const char* bad : {"", "h", "-1", "1h30", "2 h", "1x", "nan", "inf", "1hh"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(Units, SizesAreSaidInTheUnitThatFits) {
  EXPECT_EQ(size_text(1), "1 byte");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1536), "1.50 KiB");
  EXPECT_EQ(size_text(256 << 20), "256 MiB");
  EXPECT_EQ(size_text(14389752), "13.72 MiB");
}

}  // namespace
}  // namespace antichain
