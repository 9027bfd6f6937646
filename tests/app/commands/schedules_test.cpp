// Plans and schedules that one command writes are simulated, rehearsed and trained by others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "framework/json.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;
class SchedulesOfCommands : public SmallJob {
 protected:
  // Returns what simulate wrote, without the times that it took itself.
  static Json prediction_in(const std::string& name) {
    Json prediction = read_json(name);
    prediction.erase("reading_s"), prediction.erase("planning_s");
    return prediction;
  }
};

// A batch of 4 images is one micro-batch of the job's profile.
TEST_F(SchedulesOfCommands, AsynchronousOnesAreEmulatedOnOneRank) {
  const std::string data = "train --model resnet20 --data-dir data --profile p.json --steps 5 ",
                    one_each = data + "--batch 4 --microbatches 1 --schedule pipedream --plan d.json ",
                    batches = data + "--batch 16 --microbatches 4 --schedule 2bw ";
  ASSERT_EQ(run("plan --profile p.json --stages 2 --schedule pipedream --microbatches 1 --json d.json").code,
            0);
  const auto state = [&](const std::string& words) {
    const ProgramRun done = run(words + " --json a.json");
    EXPECT_EQ(done.code, 0) << done.err;
    return read_json("a.json").at("state");
  };
  const Json emulated = state(one_each + "--emulate-delays 2");
  EXPECT_EQ(state(one_each + "--local 2"), emulated);
  const Json one = state(batches);
  EXPECT_EQ(state(batches + "--local 2"), one);
  EXPECT_EQ(state(batches + "--emulate-delays 3"), one);
  EXPECT_NE(state(data + "--batch 16 --microbatches 4"), one);

  const ProgramRun predicted =
      run("simulate --profile p.json --plan d.json --schedule pipedream --microbatches 1 --print-program "
          "--write-schedule d.txt --json e.json");
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  for (const char* part : {"versions", "weights 1 back"}) EXPECT_THAT(predicted.out, HasSubstr(part));
  EXPECT_THAT(read_file(path("d.txt")), HasSubstr("delays 1 0"));
  EXPECT_EQ(
      run("simulate --profile p.json --plan d.json --schedule d.txt --microbatches 1 --json f.json").code, 0);
  EXPECT_EQ(prediction_in("e.json"), prediction_in("f.json"));

  const std::string predicting = one_each +
                                 "--predict momentum --delay-correction pipemare "
                                 "--synchronous-steps 1 --annealing-steps 3 ";
  const Json ahead = state(predicting + "--emulate-delays 2");
  EXPECT_EQ(state(predicting + "--local 2"), ahead);
  EXPECT_NE(ahead, emulated);
  EXPECT_THAT(run("simulate --profile p.json --plan d.json --schedule pipedream --predict xpipe "
                  "--microbatches 1 --print-program")
                  .out,
              HasSubstr("weights 0 back, 1 ahead"));
  expect_refused(data + "--predict xpipe", 2, "--schedule 2bw, pipedream or stale");
  expect_refused(data + "--delay-correction pipemare", 2, "--schedule 2bw, pipedream or stale");
  expect_refused(data + "--synchronous-steps 1", 2, "--schedule 2bw, pipedream or stale");
  expect_refused(one_each + "--local 2 --annealing-steps 1", 2, "--delay-correction pipemare");
  expect_refused(data + "--emulate-delays 2", 2, "--schedule 2bw, pipedream or stale");
  expect_refused(one_each + "--emulate-delays 3", 2, "a plan of 3 stages, but this one has 2");
  expect_refused(batches + "--local 2 --clip-norm 1", 2, "no rank waits for another");
  expect_refused(batches + "--on-nan skip", 2, "leaves steps out");
  expect_refused(data + "--batch 4 --microbatches 1 --plan d.json --local 2 --schedule d.txt --on-nan skip",
                 2, "leaves steps out");
  expect_refused(data + "--batch 4 --microbatches 1 --plan d.json --local 2 --schedule d.txt --clip-norm 1",
                 2, "no rank waits for another");
  expect_refused(batches + "--overlap-steps off", 2, "steps overlap");
  const std::string sharded =
      "plan --profile p.json --stages 1 --replicas 2 --shard-optimiser on --microbatches 4 --json "
      "sharded.json ";
  expect_refused(sharded + "--schedule 2bw", 2, "--schedule 2bw keeps older weights");
  EXPECT_EQ(run(sharded).code, 0);
  for (const char* prediction : {"none", "momentum"})
    expect_refused(batches + "--local 2 --plan sharded.json --predict " + prediction, 2,
                   "the plan shards the optimiser");
  const std::string saved = data + "--batch 4 --microbatches 1 --plan d.json --local 2 --checkpoint saved ";
  EXPECT_EQ(run(saved + "--schedule pipedream").code, 0);
  expect_refused(saved + "--steps 6 --schedule stale --resume auto", 2, "were those of their forwards");
  EXPECT_EQ(run(batches + "--local 2 --memory-bytes 1GiB").code, 0);
  expect_refused(batches + "--local 2 --memory-bytes 100KiB", 3, "fits the memory");
  expect_refused(
      "simulate --profile p.json --plan d.json --schedule d.txt --microbatches 1 --memory-bytes 9K", 3,
      "this split needs");
  expect_refused(
      "simulate --profile p.json --plan d.json --schedule pipedream --microbatches 1 "
      "--write-schedule d.csv",
      2, "CSV of PyTorch");
}

TEST_F(SchedulesOfCommands, PlansAndSchedulesGoRoundAsFiles) {
  ASSERT_EQ(
      run("simulate --profile p.json --plan plan.json --microbatches 4 --schedule gpipe --json sim.json "
          "--trace predicted.json --write-schedule s.txt --width 80")
          .code,
      0);
  EXPECT_EQ(
      run("simulate --profile p.json --plan plan.json --microbatches 4 --schedule s.txt --json again.json")
          .code,
      0);
  EXPECT_EQ(prediction_in("sim.json"), prediction_in("again.json"));
  const Json prediction = read_json("sim.json");
  EXPECT_GT(prediction["step_s"], 0);
  EXPECT_EQ(prediction["peak_memory_bytes"].size(), 2u);
  for (size_t rank = 0; rank < 2; ++rank) {
    int64_t sum = 0;
    for (const Json& bytes : prediction["memory"][rank]) sum += bytes.get<int64_t>();
    EXPECT_EQ(prediction["peak_memory_bytes"][rank], sum);
  }

  const std::string train = std::string("train --local 2 --steps 2") + given;
  ASSERT_EQ(run(train + "--plan plan.json --schedule s.txt --json a.json --trace measured.json").code, 0);
  ASSERT_EQ(run(train + "--plan moved.json --json b.json").code, 0) << "an edited plan";
  const Json a = read_json("a.json"), b = read_json("b.json");
  EXPECT_NE(a["plan_hash"], b["plan_hash"]);
  EXPECT_EQ(a["state"], b["state"]) << "the same bits whatever the cut and the schedule";

  // Both have the same labels on the same ranks, so that one can be laid over the other.
  const auto labels = [](const Json& trace) {
    std::vector<std::pair<int, std::string>> all;
    for (const Json& event : trace["traceEvents"])
      if (event["ph"] == "X") all.emplace_back(event["tid"], event["name"]);
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(labels(read_json("predicted.json")), labels(read_json("measured.json")));
}

// One rank plans the order and the others take it, so training has the bits of one rank.
TEST_F(SchedulesOfCommands, AnOrderIsPlannedSimulatedRehearsedAndTrained) {
  const ProgramRun simulated =
      run("simulate --profile p.json --stages 2 --microbatches 4 --schedule auto --write-schedule auto.txt");
  EXPECT_EQ(simulated.code, 0) << simulated.err;
  const auto in_one_line = [](const ProgramRun& run) {
    return std::regex_replace(run.out, std::regex("\\s+"), " ");
  };
  EXPECT_THAT(in_one_line(simulated), HasSubstr("under auto Link"));
  EXPECT_THAT(in_one_line(simulated), HasSubstr("Order searched"));
  EXPECT_THAT(in_one_line(simulated), HasSubstr("at most 2 micro-batches in flight"));
  const ProgramRun limited =
      run("plan --profile p.json --stages 2 --microbatches 4 --schedule auto --in-flight 3,1");
  EXPECT_EQ(limited.code, 0) << limited.err;
  EXPECT_THAT(in_one_line(limited), HasSubstr("at most 3, 1 micro-batches in flight"));
  EXPECT_EQ(run("rehearse --profile p.json --stages 2 --microbatches 4 --schedule auto").code, 0);
  const std::string train =
      "train --model resnet20 --dataset synthetic --batch 16 --microbatches 4 --steps 2 "
      "--lr-schedule constant --profile p.json --json r.json ";
  const auto state = [&](const std::string& options) {
    const ProgramRun trained = run(train + options);
    EXPECT_EQ(trained.code, 0) << trained.err;
    return read_json("r.json").at("state");
  };
  EXPECT_EQ(state("--local 2 --schedule auto"), state("--local 1"));
  const auto refused = [](const std::string& words, const std::string& part) {
    antichain::expect_refused(run(words), 2, part, words);
  };
  const std::string plan = "plan --profile p.json --stages 2 --microbatches 4 ";
  refused(plan + "--in-flight 2", "--in-flight limits the orders of --schedule auto");
  refused(plan + "--schedule auto --in-flight 0", "takes numbers from 1");
  refused(plan + "--schedule auto --in-flight 1,2,3", "has 3 numbers, but the plan has 2 ranks");
  refused(plan + "--schedule auto --replicas 2,1", "one or two stages a rank without replicas");
}

TEST_F(SchedulesOfCommands, SchedulesOfSeveralStagesARankAreComparedTradedAndTrained) {
  const auto refused = [](const std::string& words, int code, const std::string& part) {
    antichain::expect_refused(run(words), code, part, words);
  };
  const ProgramRun compared =
      run("simulate --profile p.json --stages 2 --microbatches 5 --compare-schedules");
  EXPECT_EQ(compared.code, 0) << compared.err;
  ASSERT_EQ(run("info --json all.json").code, 0);
  const Json listed = read_json("all.json").at("schedules");
  EXPECT_GT(listed.size(), 8u);
  for (const Json& schedule : listed) {
    const std::string name = schedule.at("schedule");
    const bool compares = schedule.at("trains") && !schedule.at("asynchronous");
    EXPECT_EQ(compared.out.find(name) != std::string::npos, compares) << name;
  }
  EXPECT_THAT(compared.out, HasSubstr("auto"));
  EXPECT_THAT(compared.out, HasSubstr("interleaved can't be run with 5 micro-batches on 2 ranks"));
  refused("simulate --profile p.json --stages 2 --schedule zb-v --compare-schedules", 2, "excludes");
  const ProgramRun of_one_plan =
      run("simulate --profile p.json --plan plan.json --compare-schedules --html p.html");
  EXPECT_EQ(of_one_plan.code, 0) << of_one_plan.err;
  for (const char* line : {"with the plan plan.json", "  zb-h1", "interleaved  ", "zb-v         "})
    EXPECT_THAT(of_one_plan.out, HasSubstr(line));
  EXPECT_THAT(read_file(path("p.html")), HasSubstr("zb-v"));
  refused("plan --profile p.json --stages 2 --schedule zb-v --chunks 3", 2, "zb-v has 2 stages a rank");
  refused("plan --profile p.json --stages 2 --schedule interleaved --microbatches 5", 2, "--microbatches 6");

  const ProgramRun planned =
      run("plan --profile p.json --stages 2 --schedule dualpipe-v --microbatches 4 --json v.json");
  EXPECT_THAT(planned.out, HasSubstr("Uneven stages"));
  ASSERT_EQ(
      run("simulate --profile p.json --plan v.json --schedule dualpipe-v --microbatches 4 --json a.json "
          "--write-schedule v.csv")
          .code,
      0);
  EXPECT_THAT(read_file(path("v.csv")), HasSubstr(")OVERLAP_F_B"));
  ASSERT_EQ(
      run("simulate --profile p.json --plan v.json --schedule v.csv --microbatches 4 --json b.json").code, 0);
  EXPECT_EQ(prediction_in("a.json"), prediction_in("b.json"));
  write_file(path("bad.csv"), "0F0,0SEND_F0\n1F0\n");
  refused("simulate --profile p.json --plan v.json --schedule bad.csv --microbatches 1", 3, "bad.csv:1:5");

  const std::string train = std::string("train --local 2 --steps 2") + given;
  ASSERT_EQ(run(train + "--plan v.json --schedule v.csv --json c.json").code, 0);
  ASSERT_EQ(run(train + "--schedule 1f1b --json d.json").code, 0);
  EXPECT_EQ(read_json("c.json")["state"], read_json("d.json")["state"]);
}

}  // namespace
}  // namespace antichain
