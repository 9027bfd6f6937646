// A bench's parted steps put weight halves off, as schedules do that part backwards.
#include "pipeline/measure/bench.h"

#include <gtest/gtest.h>

#include "tests/pipeline/planning/networks.h"

namespace antichain {
namespace {

std::string computed(const Schedule& schedule) {
  std::string words;
  for (const Action& action : schedule.ranks.at(0))
    if (computes(action.verb)) words += print(action) + " ";
  return words;
}

TEST(Bench, WeightHalvesComeAfterAnotherMicroBatch) {
  const Profile profile = test::chain(3, {});
  const Plan plan = one_stage(profile);
  EXPECT_EQ(computed(whole_backwards(profile, plan, 2)), "0F0 0B0 0F1 0B1 ");
  EXPECT_EQ(computed(parted_backwards(profile, plan, 2)), "0F0 0F1 0I0 0I1 0W0 0W1 ");
  EXPECT_EQ(computed(parted_backwards(profile, plan, 1)), "0F0 0I0 0W0 ");
}

}  // namespace
}  // namespace antichain
