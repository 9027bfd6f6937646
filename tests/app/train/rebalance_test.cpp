// A run moves nodes off a rank that is slow, and says so; its results are those of a run that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "framework/files/checkpoint_folder.h"
#include "framework/json.h"
#include "partition/plan/plan.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* learning = "--lr 0.05 --steps 50 --evaluate-every 1000 ";

using Rebalancing = SmallJob;

TEST_F(Rebalancing, MovesNodesOffASlowRankToTheSameBits) {
  const std::string words = std::string("train") + given + learning + "--local 2 ";
  const std::string stays = ran(words + "--rebalance off --json stays.json");
  EXPECT_THAT(stays, Not(HasSubstr("Rebalancing")));
  const ProgramRun moves = run_behind(
      folder_of_small_job(), "env ANTICHAIN_FAULT=slow:rank=1:step=0",
      words + "--json moves.json --results kept --checkpoint moves --checkpoint-every 10 --keep 9");
  ASSERT_EQ(moves.code, 0) << moves.err;
  EXPECT_THAT(moves.out, HasSubstr("Rebalancing"));
  EXPECT_THAT(moves.out, HasSubstr("moved to another rank"));
  const Json one = read_json("stays.json"), other = read_json("moves.json");
  EXPECT_EQ(other["state"], one["state"]);
  EXPECT_FALSE(one.contains("rebalances"));
  const Json& moved = other["rebalances"].at(0);
  EXPECT_EQ(moved["what"], "moved");
  EXPECT_LT(moved["speeds"][1], moved["speeds"][0]);
  EXPECT_LT(moved["predicted_after_s"], moved["predicted_before_s"]);
  const Json& last = other["rebalances"].back();
  EXPECT_EQ(other["plan_hash"], last["plan_hash"]);
  EXPECT_EQ(plan_hash(plan_from_json(read_file(path("kept/plan.json")), "kept/plan.json")),
            last["plan_hash"]);
  std::set<std::string> plans;
  const std::vector<std::string> checkpoints = CheckpointFolder(path("moves")).list();
  for (const std::string& checkpoint : checkpoints)
    plans.insert(verify_checkpoint(checkpoint).setting.at("plan"));
  EXPECT_TRUE(plans.contains(other["plan_hash"]));
  EXPECT_TRUE(plans.contains(moved["plan_hash"]));
}

TEST_F(Rebalancing, IsRefusedWhereNodesStay) {
  const std::string words = std::string("train") + given + learning + "--rebalance auto ";
  for (const auto& [option, part] : {std::pair("--plan plan.json", "the plan is that of --plan plan.json"),
                                     {"--cuts layer2.0.conv1", "--cuts"},
                                     {"--method uniform", "--method uniform makes the plan"},
                                     {"--replicas auto", "replicas"},
                                     {"--schedule auto", "--schedule auto searches an order"},
                                     {"--schedule pipedream", "older weights"}})
    expect_refused(words + "--local 2 " + option, 2, part);
  expect_refused(words + "--local 1", 2, "the job has one rank");
}

}  // namespace
}  // namespace antichain
