// A results folder explains a training run, and so do the beginning and the end of its log. The weights of
// its checkpoint are taken wherever a weight file is.
#include <gmock/gmock.h>

#include <filesystem>

#include "framework/json.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string train_for_results =
    "train --model resnet20 --batch 16 --microbatches 4 --profile p.json --dataset synthetic --lr 0.01 "
    "--seed 7 ";

using Results = InACopyOfTheJob;

TEST_F(Results, AFolderSaysWhatMadeItsNumbers) {
  const std::string result = ran(train_for_results + "--local 2 --steps 4 --results r");
  const Json record = json("r/run.json");
  EXPECT_EQ(record["model"], "resnet20");
  EXPECT_EQ(record["seed"], 7);
  EXPECT_EQ(record["settings"]["lr"], 0.01);
  ASSERT_EQ(record["starts"].size(), 1u);
  const Json& start = record["starts"][0];
  EXPECT_THAT(start["program"].get<std::string>(), HasSubstr("antichain "));
  EXPECT_FALSE(start["revision"].get<std::string>().empty());
  EXPECT_EQ(start["libraries"].size(), 2u) << "the device's and MPI's";
  EXPECT_EQ(start["ranks"].size(), 2u);
  EXPECT_EQ(start["command"].back(), "r");
  const Json summary = json("r/summary.json");
  EXPECT_EQ(start["plan_hash"], summary["plan_hash"]);
  EXPECT_EQ(json("r/plan.json")["stages"].size(), 2u);
  ran("plan --profile r/profile.json --stages 2 --microbatches 4");
  EXPECT_THAT(read_file(path("r/metrics.jsonl")), HasSubstr("\"step\":4"));
  for (const char* part :
       {"Program   antichain", "Command   ", "Hosts     ", "Where the time went", "Load  "})
    EXPECT_THAT(result, HasSubstr(part));
  EXPECT_EQ(result.find("Please cite"), std::string::npos) << "a trial of 4 steps";
}

// All of a rank's time has a kind; both ranks begin and end together, and the steps are a part of it.
TEST_F(Results, TimesAddUp) {
  ran(train_for_results + "--local 2 --steps 6 --results r");
  const Json seconds = json("r/summary.json")["seconds"];
  ASSERT_EQ(seconds.size(), 2u);
  std::vector<double> sums;
  for (const Json& rank : seconds) {
    double sum = 0;
    for (const auto& [kind, s] : rank.items()) sum += s.get<double>();
    sums.push_back(sum);
    for (const char* kind : {"forward", "backward", "update", "waiting"})
      EXPECT_GT(rank[kind].get<double>(), 0) << kind;
    EXPECT_EQ(rank["test"], 0.0) << "it ended within its first epoch";
    EXPECT_EQ(rank["checkpoint"], 0.0);
  }
  double steps_s = 0;
  std::istringstream lines(read_file(path("r/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);)
    if (const Json json = Json::parse(line); json.contains("step")) steps_s += json["seconds"].get<double>();
  EXPECT_GE(sums[0], steps_s * 0.999) << "rank 0's steps are timed from within";
  // Between steps there is no work. What else takes the cores may hold the last word up.
  EXPECT_LT(sums[0], steps_s + 1);
  EXPECT_NEAR(sums[0], sums[1], 1);
}

TEST_F(Results, AFolderHoldsOneRunAndItsContinuations) {
  const std::string words = train_for_results + "--results r --checkpoint ck --resume auto ";
  ran(words + "--steps 2 --lr-schedule constant");
  ran(words + "--steps 4 --lr-schedule constant");
  const Json starts = json("r/run.json")["starts"];
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0]["from"], "the beginning");
  EXPECT_EQ(starts[1]["from"], "ck/step-000000000002");
  const std::string other = train_for_results + "--results r --steps 2";
  const std::string before = read_file(path("r/summary.json"));
  expect_refused(other, 2, "holds the results of a run that has ended");
  EXPECT_EQ(read_file(path("r/summary.json")), before);
}

TEST_F(Results, CheckpointsAreTakenWhereWeightFilesAre) {
  ran(train_for_results + "--local 3 --steps 3 --checkpoint three");
  ran(train_for_results + "--steps 3 --checkpoint one");
  for (const char* from : {"three", "one", "three/step-000000000003"})
    ASSERT_EQ(run(std::string("export --model resnet20 --init ") + from + " --out " +
                  fs::path(from).filename().string() + ".h5")
                  .code,
              0);
  EXPECT_EQ(read_file(path("three.h5")), read_file(path("one.h5"))) << "however many stages wrote it";
  EXPECT_EQ(read_file(path("three.h5")), read_file(path("step-000000000003.h5")));
  ran("export --model resnet20 --seed 7 --out initial.h5");
  EXPECT_NE(read_file(path("three.h5")), read_file(path("initial.h5"))) << "it was trained";
  ran(train_for_results + "--local 2 --steps 1 --init three");
  fs::create_directories(path("empty"));
  const std::string words = "export --model resnet20 --init empty --out no.h5";
  expect_refused(words, 3, "there is no checkpoint in empty");
  fs::resize_file(path("three/step-000000000003/stage-1.h5"), 1000);
  EXPECT_NE(run("export --model resnet20 --init three --out no.h5").code, 0) << "damaged";
}

}  // namespace
}  // namespace antichain
