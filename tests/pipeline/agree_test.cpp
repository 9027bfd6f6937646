// Ranks that were started differently are found out at once, and the odd ones are named.
#include "pipeline/agree.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "pipeline/thread_transport.h"

namespace antichain {
namespace {

// What each rank is refused with when rank r holds values[r]; "" where it is not.
std::vector<std::string> refusals(const std::vector<std::string>& values) {
  std::vector<std::string> all(values.size());
  run_ranks(int(values.size()), [&](Transport& transport) {
    const auto r = size_t(transport.rank());
    try {
      agree(transport, "the version of the program", values[r]);
    } catch (const Error& error) {
      all[r] = error.what();
    }
  });
  return all;
}

TEST(Agree, NamesTheOddRanksOnEveryRank) {
  EXPECT_EQ(refusals({"1", "1", "1"}), std::vector<std::string>(3));
  for (const std::string& text : refusals({"1", "2", "1", "3"}))
    EXPECT_NE(text.find("the version of the program of ranks 1, 3 differs"), std::string::npos) << text;
  for (const std::string& text : refusals({"2", "1", "1"}))
    EXPECT_NE(text.find("of rank 0 differs"), std::string::npos) << text;
}

TEST(Agree, DescribesWhatIsOdd) {
  EXPECT_EQ(describe_odd({"with a", "with a", "with b"}, "was started", "were started"),
            "rank 2 was started with b, the others with a");
  EXPECT_EQ(describe_odd({"with a", "with b", "with b", "with a", "with a"}, "was started", "were started"),
            "ranks 1, 2 were started with b, the others with a");
  EXPECT_EQ(describe_odd({"with a", "with a"}, "was started", "were started"), "");
}

}  // namespace
}  // namespace antichain
