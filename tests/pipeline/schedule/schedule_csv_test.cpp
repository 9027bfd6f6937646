// Schedules are written and read as the CSV of torch.distributed.pipelining.
#include "pipeline/schedule/schedule_csv.h"

#include <gtest/gtest.h>

#include "pipeline/schedule/policy.h"
#include "tests/expect_error.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

TEST(ScheduleCsv, IsWrittenAsPyTorchReadsIt) {
  const ChainOfRanks two(Policy::one_f_one_b, 2);
  EXPECT_EQ(to_csv(make_schedule(two.profile, two.plan, Policy::one_f_one_b, 3)),
            "0F0,0F1,0B0,0F2,0B1,0B2\n"
            "1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(to_csv(make_schedule(two.profile, two.plan, policy("zb-h1"), 2)),
            "0F0,0F1,0I0,0W0,0I1,0W1\n"
            "1F0,1I0,1F1,1I1,1W0,1W1\n");
}

TEST(ScheduleCsv, HasFusedPairs) {
  const Policy& policy = antichain::policy("dualpipe-v");
  const ChainOfRanks of(policy, 2);
  EXPECT_EQ(to_csv(make_schedule(of.profile, of.plan, policy, 5)),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,(0F4;3B2)OVERLAP_F_B,(3F3;"
            "0B1)OVERLAP_F_B,3B3,(3F4;0B2)OVERLAP_F_B,3B4,0I3,0W3,0I4,0W4\n"
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,(1F4;2B2)"
            "OVERLAP_F_B,(2F4;1B2)OVERLAP_F_B,2B3,1B3,2I4,1I4,2W4,1W4\n");
}

// Reading what was written gives the schedule back, messages and updates included.
TEST(ScheduleCsv, GivesEveryPolicysScheduleBack) {
  for (const Policy& policy : policies())
    for (const int ranks : {1, 2, 3, 5}) {
      if (policy.asynchronous()) continue;  // the CSV has no delays
      SCOPED_TRACE(fmt::format("{} on {} ranks", policy.name, ranks));
      const ChainOfRanks of(policy, ranks);
      const Schedule schedule = make_schedule(of.profile, of.plan, policy, fitting(policy, 11, ranks));
      const std::string csv = to_csv(schedule);
      const Schedule again = make_schedule(of.profile, of.plan, parse_csv(csv, "x.csv"), "x.csv");
      EXPECT_EQ(again.microbatches, schedule.microbatches);
      EXPECT_EQ(print(again), print(schedule));
      EXPECT_EQ(to_csv(again), csv);
    }
}

TEST(ScheduleCsv, IdleCellsAndBlanksAreReadOver) {
  const CsvSchedule csv = parse_csv("0F0, ,0F1,,0B0,0B1\r\n ,1F0,1B0,1F1,1B1\r\n", "x.csv");
  EXPECT_EQ(csv.microbatches, 2);
  ASSERT_EQ(csv.orders.size(), 2u);
  EXPECT_EQ(csv.orders[0].actions.size(), 4u);
  EXPECT_EQ(csv.orders[1].actions.size(), 4u);
}

TEST(ScheduleCsv, OtherWordsAreRefusedWithLineAndColumn) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string> words) {
    SCOPED_TRACE(text);
    expect_error([&] { parse_csv(text, "x.csv"); }, words);
  };
  refused("0F0,0B0\n1F0,1RECV_F0\n", {"x.csv:2:5", "\"1RECV_F0\"", "compute-only"});
  for (const char* word : {"0UNSHARD", "0SEND_F1", "0REDUCE_GRAD", "F0", "0F", "0", "-1F0", "0F-1", "0F01",
                           "0f1", "0F1 x", "0F99999999999", "0F65536", "(0F1;1B0)", "(0F1)OVERLAP_F_B",
                           "(0F1;1B0)OVERLAP_F_B0", "(0F1;1X0)OVERLAP_F_B"})
    refused(fmt::format("0F0,{}\n", word), {"x.csv:1:5"});
  refused("(0B0;1F0)OVERLAP_F_B\n", {"x.csv:1:1", "no forward and then the whole backward"});
  refused("(0F1;0B0)OVERLAP_F_B\n", {"x.csv:1:1", "another stage"});
  refused("0F1,0F0\n", {"x.csv:1:5", "0F0 comes after 0F1", "out of order"});
  refused("0F0,0F1,0I0,0B1,0W0\n", {"x.csv:1:17", "0W0 comes after 0B1"});
  refused("0F0,0F0\n", {"x.csv:1:5", "0F0 comes after 0F0"});
  refused("", {"x.csv", "no action"});
  refused("\n,\n", {"x.csv", "no action"});
}

TEST(ScheduleCsv, HasToFitThePlan) {
  const ChainOfRanks of(Policy::one_f_one_b, 2);
  const auto refused = [&](const std::string& text, std::initializer_list<std::string> words) {
    SCOPED_TRACE(text);
    expect_error([&] { make_schedule(of.profile, of.plan, parse_csv(text, "x.csv"), "x.csv"); }, words);
  };
  refused("0F0,0B0\n1F0,1B0\n2F0,2B0\n", {"x.csv:3", "2F0 names no stage", "the plan has 2"});
  refused("1F0,1B0\n0F0,0B0\n", {"x.csv:1", "1F0 is on rank 0", "rank 1"});
  refused("0F0,0B0\n", {"1 rank,", "the plan has 2"});
  refused("0F0,0B0\n1F0\n", {"rank 1", "1B0", "missing"});
  refused("0F0,0F1,0B0,0B1\n1F0,1B0,1B1,1F1\n", {"rank 1", "1B1", "before 1F1"});
}

}  // namespace
}  // namespace antichain::test
