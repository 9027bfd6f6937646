// The end of a job's log has the table of times, and says what to cite.
#include "app/report/time_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/job/job.h"
#include "app/job/job_log.h"
#include "app/report/citations.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/framework/stand_ins.h"

namespace antichain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// forward backward update waiting transfer data test checkpoint other
const std::vector<TimeSheet> two = {TimeSheet::from_text("2 3 1 2 0.5 0 0 0 0.5"),
                                    TimeSheet::from_text("1 1 0 6 0.5 0.25 0 0 0.25")};

TEST(TimeReport, ShowsEveryRankAndHowEvenlyTheyWork) {
  const std::string text = describe(two, {"n1", "n2"});
  EXPECT_THAT(text, HasSubstr("  0 n1      2.00     3.00   1.00    2.00     0.50    -  0.50 9.00"));
  EXPECT_THAT(text, HasSubstr("  1 n2      1.00     1.00      -    6.00     0.50 0.25  0.25 9.00"));
  EXPECT_THAT(text, Not(HasSubstr("checkpoint"))) << "nothing was spent on it";
  // 6 s and 2 s of computing: 6 over their mean 4; 8 of 18 s.
  EXPECT_THAT(text, HasSubstr("busiest rank computes 1.50 times the mean; all 44.4 % of the time"));
  EXPECT_DOUBLE_EQ(load_imbalance(two), 1.5);
  EXPECT_EQ(load_imbalance({TimeSheet()}), 1) << "of a run without steps";
}

TEST(TimeReport, IsDataAsWell) {
  const nlohmann::ordered_json json = to_json(two);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["backward"], 3.0);
  EXPECT_EQ(json[1]["waiting"], 6.0);
  EXPECT_EQ(json[1]["checkpoint"], 0.0);
}

// The tenth number: for how long the rank had no core.
TEST(TimeReport, WarnsOfARankWithoutACore) {
  const TimeSheet alone = TimeSheet::from_text("2 3 1 2 0.5 0 0 0 0.5 0.9");
  const TimeSheet shared = TimeSheet::from_text("2 3 1 2 0.5 0 0 0 0.5 4.5");
  EXPECT_EQ(starved_rank({alone, alone}, {"n1", "n2"}), "") << "10 % happen to everybody";
  EXPECT_EQ(starved_rank({}, {}), "");
  EXPECT_EQ(starved_rank(two, {"n1", "n2"}), "") << "where the system does not count";
  EXPECT_DOUBLE_EQ(starved_share({alone, shared, alone}), 0.5);
  EXPECT_EQ(starved_rank({alone, shared, alone}, {"n1", "n2", "n3"}),
            "rank 1 on n2 had no core for 50.0 % of its time");
}

TEST(TimeReport, DoubtfulTimesAreSaidOnceARun) {
  const test::StandInBackend device;
  const Context context(device);
  const SoloTransport alone;
  ::testing::internal::CaptureStderr();
  warn_of_starving("", alone, context);
  warn_of_starving("a rank had no core for 30.0 % of the profiling", alone, context);
  warn_of_starving("rank 0 on n1 had no core for 40.0 % of its time", alone, context);
  const std::string once =
      "antichain: warning: a rank had no core for 30.0 % of the profiling: times are doubtful, measure again "
      "when nothing else runs there\n";
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::AnyOf(once, ""))
      << "nothing where another test of this process had reason to say it";
}

TEST(TimeReport, CitesWhatWasUsed) {
  const std::vector<std::string> works = citations({"resnet18", "antichain", "gpipe", "CIFAR-10"});
  EXPECT_THAT(works, ElementsAre(HasSubstr("antichain"), HasSubstr("Deep Residual Learning"),
                                 HasSubstr("PipeDream"), HasSubstr("GPipe"), HasSubstr("Tiny Images")));
  EXPECT_EQ(in_short(works[1]), "He et al., CVPR 2016");
  EXPECT_EQ(in_short(works[0]), works[0]) << "the program itself";
  EXPECT_EQ(citations({"mine", "given", "order.txt", "my images"}).size(), 1u) << "only what is known";
}

TEST(TimeReport, NamesHostsInShort) {
  EXPECT_EQ(hosts_in_short({"n1", "n1", "n1", "n2"}), "n1: ranks 0-2, n2: rank 3");
  EXPECT_EQ(hosts_in_short({"n1"}), "n1: rank 0");
}

}  // namespace
}  // namespace antichain
