// A job's log says how many GPUs each rank sees, and warns of what costs time.
#include "app/job/job_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antichain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankGpu rank(const std::string& host, const std::string& gpu, int visible, int cores = 32) {
  return {.host = host, .gpu = gpu, .visible = visible, .cores = cores, .of_cores = 64};
}

TEST(JobGpus, OfItsOwnEachIsNothingToWarnOf) {
  const std::vector<RankGpu> ranks = {rank("n1", "a", 8), rank("n1", "b", 8), rank("n2", "a", 8)};
  EXPECT_EQ(describe(ranks), "8 visible to each rank, each of which has one of its own");
  EXPECT_THAT(warnings_of(ranks), IsEmpty());
  EXPECT_EQ(describe({rank("n1", "a", 8)}), "8 visible to the rank");
  EXPECT_THAT(warnings_of({rank("n1", "a", 1), rank("n2", "a", 1)}), IsEmpty()) << "one a host";
}

TEST(JobGpus, SharedOnesAreNamed) {
  const std::vector<RankGpu> ranks = {rank("n1", "a", 1), rank("n1", "a", 1)};
  EXPECT_EQ(describe(ranks), "1 visible to each rank, which share some");
  EXPECT_THAT(warnings_of(ranks),
              ElementsAre(HasSubstr("ranks 0, 1 on n1 share GPU a, the only one that they see")));
}

TEST(JobGpus, OnesThatCanNotReachEachOtherAreNamed) {
  EXPECT_THAT(warnings_of({rank("n1", "a", 1), rank("n1", "b", 1)}),
              ElementsAre(HasSubstr("ranks 0 and 1 on n1 see only their own GPU each")));
}

TEST(JobGpus, RanksOnTooFewCoresAreNamed) {
  EXPECT_THAT(warnings_of({rank("n1", "a", 2), rank("n1", "b", 2, 1)}),
              ElementsAre(HasSubstr("rank 1 on n1 may run on 1 core only")));
  RankGpu small = rank("n1", "a", 1, 2);
  small.of_cores = 2;  // there are no more
  EXPECT_THAT(warnings_of({small}), IsEmpty());
}

}  // namespace
}  // namespace antichain
