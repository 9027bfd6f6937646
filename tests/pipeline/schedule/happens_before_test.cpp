// Sends find their receives, and certainty follows program order and messages.
#include "pipeline/schedule/happens_before.h"

#include <gtest/gtest.h>

namespace antichain::test {
namespace {

// By what they are, not by their order; what has no other half stays alone.
TEST(MatchMessages, FindsTheOtherHalf) {
  const Schedule schedule = parse_schedule(
      "microbatches 2\n"
      "rank 0: 0S0:a1>1 0S0:a2>1 0S1:a1>1 0S1:a3>1\n"
      "rank 1: 1R0:a2<0 1R1:a1<0 1R0:a1<0 1R1:a2<0\n",
      "text");
  const Partners partners = match_messages(schedule);
  EXPECT_EQ(partners.of[0], (std::vector<int>{2, 0, 1, -1}));
  EXPECT_EQ(partners.of[1], (std::vector<int>{1, 2, 0, -1}));
  EXPECT_TRUE(partners.meetings.empty());
}

TEST(HappensBefore, FollowsProgramOrderAndMessages) {
  const Schedule schedule = parse_schedule(
      "microbatches 2\n"
      "rank 0: 0F0 0S0:a1>1 0F1 0R0:g1.2<1 0B0\n"
      "rank 1: 1F1 1R0:a1<0 1F0 1S0:g1.2>0 1B0\n",
      "text");
  const HappensBefore before(schedule, match_messages(schedule));
  EXPECT_TRUE(before(0, 0, 0, 2));   // 0F0 before 0F1: program order
  EXPECT_FALSE(before(0, 2, 0, 2));  // nothing is before itself
  EXPECT_TRUE(before(0, 0, 1, 2));   // 0F0 before 1F0: a message
  EXPECT_FALSE(before(0, 0, 1, 0));  // 1F1 may be anywhere
  EXPECT_FALSE(before(0, 2, 1, 4));  // 0F1 and 1B0 too
  EXPECT_TRUE(before(1, 1, 0, 4));   // the recv before 0B0
  EXPECT_FALSE(before(1, 4, 0, 4));
}

}  // namespace
}  // namespace antichain::test
