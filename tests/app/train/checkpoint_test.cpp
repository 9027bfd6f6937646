// These tests use checkpoints as a user does: they start the program, stop it, and start it again.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/files/checkpoint.h"
#include "framework/files/hdf5_arrays.h"
#include "framework/json.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string train_small =
    "train --model resnet20 --batch 16 --microbatches 4 --data-dir data --profile p.json --lr 0.05 ";

// Returns the metrics without what a clock decides.
std::vector<std::string> metrics(const std::string& file) {
  std::vector<std::string> lines;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) {
    auto json = nlohmann::ordered_json::parse(line);
    if (json.contains("predicted_step_s"))
      json = {{"state", json["state"]}, {"final_loss", json["final_loss"]}};
    for (const char* key : {"seconds", "images_per_s", "train_s", "test_s"}) json.erase(key);
    lines.push_back(json.dump());
  }
  return lines;
}

// The job's folder has the metrics of two epochs (six steps), and their checkpoints of steps 2, 4 and 6.
class Checkpoints : public SmallJob {
 protected:
  static void SetUpTestSuite() {
    write_bytes(path("other/data_batch_1.bin"), records(48, 1));
    write_bytes(path("other/test_batch.bin"), records(23));
    ran(train_small + "--epochs 2 --metrics whole --checkpoint whole-ck --checkpoint-every 2 --keep 9");
  }
  void SetUp() override {
    for (const char* name : {"now", "metrics", "signalled"}) fs::remove_all(path(name));
    fs::copy(path("whole-ck"), path("now"), fs::copy_options::recursive);
  }

  static std::string step(int n) { return fmt::format("now/step-{:012}", n); }
  static ProgramRun resume(const std::string& words) { return run(train_small + "--epochs 2 " + words); }
  static void refused(const std::string& words, int code, const std::string& part) {
    antichain::expect_refused(resume(words), code, part, words);
  }
  static void spoil(const std::string& file) {
    std::string bytes = read_file(path(file));
    bytes[bytes.size() / 2] ^= 1;
    write_file(path(file), bytes);
  }

  // Changes what a manifest says, and gives it the right hash.
  static void reseal(const std::string& checkpoint, const std::function<void(Manifest&)>& change) {
    const std::string file = path(checkpoint + "/manifest.json");
    Manifest manifest = manifest_from_json(read_file(file), file);
    change(manifest);
    write_file(file, to_json(manifest));
  }
};

TEST_F(Checkpoints, GoOnWithoutAGapOnOtherStages) {
  for (const char* place : {"--local 1", "--local 3"}) {
    fs::remove_all(path(step(6)));
    // The end of the first run tore this line.
    write_file(path("metrics"), read_file(path("whole")) + "{\"step\": 7, \"los");
    const ProgramRun rest =
        resume(std::string("--metrics metrics --checkpoint now --keep 9 --resume auto ") + place);
    EXPECT_EQ(rest.code, 0) << rest.err;
    EXPECT_THAT(rest.out, HasSubstr("Going on from now/step-000000000004: 4 steps done"));
    EXPECT_EQ(metrics(path("metrics")), metrics(path("whole"))) << place;
    EXPECT_TRUE(fs::exists(path(step(6))));
  }
}

// The learning rate's course is as long as the epochs, wherever --steps ends the run.
TEST_F(Checkpoints, FewStepsGoOnToTheBitsOfMore) {
  const auto trained = [](const std::string& words) {
    const ProgramRun result = run(train_small + words);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("learning rate")));
  };
  trained("--steps 4 --metrics at_once");
  trained("--steps 2 --metrics in_two --checkpoint two");
  trained("--steps 4 --metrics in_two --checkpoint two --resume auto");
  EXPECT_EQ(metrics(path("in_two")), metrics(path("at_once")));
  trained("--epochs 2 --steps 2 --metrics cut --checkpoint cut_off");
  trained("--epochs 2 --metrics cut --checkpoint cut_off --resume auto");
  EXPECT_EQ(metrics(path("cut")), metrics(path("whole")));
}

// The last start made no evaluation.
TEST_F(Checkpoints, TheSummaryKnowsEvaluationsOfEarlierStarts) {
  const std::string words = train_small + "--epochs 2 --evaluate-every 2 --checkpoint seen --steps ";
  ran(words + "3 --json before");
  ran(words + "3 --json after --resume auto");
  const auto tests_in = [](const std::string& file) {
    Json all = Json::parse(read_file(path(file))), tests;
    for (const char* key : {"epochs", "final_test_loss", "final_test_accuracy", "best_step", "best_test_loss",
                            "best_test_accuracy"})
      tests[key] = all.at(key);
    return tests;
  };
  EXPECT_EQ(tests_in("after"), tests_in("before"));
}

TEST_F(Checkpoints, MpiGoOnOnTwoProcesses) {
  fs::remove_all(path(step(6)));
  write_file(path("metrics"), read_file(path("whole")));
  const ProgramRun rest =
      run_mpi(2, train_small + "--epochs 2 --metrics metrics --checkpoint now --keep 9 --resume auto");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(metrics(path("metrics")), metrics(path("whole")));
}

TEST_F(Checkpoints, AFinishedRunIsEvaluatedAgain) {
  write_file(path("metrics"), read_file(path("whole")));
  const ProgramRun rest = resume("--metrics metrics --checkpoint now --keep 9 --resume auto");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("every step was done before"));
  EXPECT_EQ(metrics(path("metrics")), metrics(path("whole")));
}

TEST_F(Checkpoints, SayOfWhichModelTheyAre) {
  const ProgramRun named = run("evaluate --model resnet20 --weights now --data-dir data --json named.json");
  ASSERT_EQ(named.code, 0) << named.err;
  ran("evaluate --weights now --data-dir data --json own.json");
  EXPECT_EQ(read_file(path("own.json")), read_file(path("named.json")));
  ran("export --model resnet20 --init now --out w.h5");
  expect_refused("evaluate --weights w.h5 --data-dir data", 2, "w.h5 does not say of which model");
}

TEST_F(Checkpoints, AutoBeginsANewWhereThereIsNone) {
  const ProgramRun first = resume("--steps 1 --checkpoint fresh --resume auto");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, Not(HasSubstr("Going on")));
  EXPECT_TRUE(fs::exists(path("fresh/step-000000000001/manifest.json")));
}

// A job's script says the same at each start.
TEST_F(Checkpoints, TheWeightsToBeginWithAreReadOnlyWhereARunBegins) {
  const std::string words = "--init nowhere.h5 --resume ";
  const ProgramRun on = resume(words + "auto --checkpoint now");
  EXPECT_EQ(on.code, 0) << on.err;
  EXPECT_THAT(on.out, HasSubstr("Going on from now/"));
  refused(words + "auto --checkpoint another", 3, "nowhere.h5");
  refused(words + "now", 2, "--init begins a run from nowhere.h5, but --resume now goes on with one");
}

TEST_F(Checkpoints, ADamagedOneIsPassedOverByName) {
  spoil(step(6) + "/stage-0.h5");
  spoil(step(4) + "/manifest.json");
  const ProgramRun rest = resume("--checkpoint now --keep 9 --resume auto");
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr(step(6) + "/stage-0.h5 is damaged"));
  EXPECT_THAT(rest.err, HasSubstr(step(4) + "/manifest.json is damaged"));
  EXPECT_THAT(rest.err, HasSubstr("going on from the older " + step(2)));
  EXPECT_THAT(rest.out, HasSubstr("2 steps done"));
}

TEST_F(Checkpoints, OneThatIsNamedIsTheOneOrNone) {
  spoil(step(6) + "/stage-0.h5");
  refused("--resume " + step(6), 3, step(6) + "/stage-0.h5 is damaged");
  fs::remove(path(step(4) + "/manifest.json"));
  refused("--resume " + step(4), 3, step(4) + " has no manifest.json");
  refused("--resume now/step-000000000777", 3, "No such file");
  refused("--resume data", 3, "there is no checkpoint in data");
  spoil(step(2) + "/stage-0.h5");
  refused("--resume now", 3, "no checkpoint in now can be used");
}

// What it was trained with, but for one word.
std::string words_with(const std::string& from = "--", const std::string& to = "--") {
  std::string words =
      "train --model resnet20 --batch 16 --microbatches 4 --data-dir data --lr 0.05 --epochs 2 --resume now";
  return words.replace(words.find(from), from.size(), to);
}

TEST_F(Checkpoints, AnotherRunsAreRefusedNamingEachDifference) {
  const auto refused_with = [](const std::string& from, const std::string& to, int code,
                               const std::string& part) { expect_refused(words_with(from, to), code, part); };
  const std::string several =
      words_with("--batch 16 --microbatches 4", "--batch 8 --microbatches 2 --seed 5");
  const ProgramRun result = run(several);
  for (const char* difference :
       {"batch is 16 in the checkpoint, but 8 here", "seed is 0", "micro-batches is 4"})
    antichain::expect_refused(result, 3, difference, several);
  refused_with("resnet20", "resnet32", 3, "model is resnet20 in the checkpoint, but resnet32 here");
  refused_with("--epochs 2", "--epochs 2 --classes 20", 3, "classes is 10 in the checkpoint, but 20 here");
  refused_with("--lr 0.05", "--lr 0.1", 3, "peak learning rate is 0.05 in the checkpoint, but 0.1 here");
  refused_with("--data-dir data", "--data-dir other", 3, "training data is ");
  refused_with("--resume", "--label-smoothing 0.1 --resume", 3,
               "label smoothing is 0 in the checkpoint, but 0.1 here");
  refused_with("--resume", "--dropout 0 --resume", 3, "dropout is 0.5 in the checkpoint, but 0 here");
  refused_with("--resume", "--freeze 'conv1.*' --resume", 3,
               "frozen parameters is none in the checkpoint, but conv1.* here");
  refused_with("--resume", "--lr-of 'conv1.*=0.1' --resume", 3,
               "learning rates of parameters is none in the checkpoint, but conv1.*=0.1 here");
  refused_with("--epochs 2", "--steps 5", 2, "6 steps already");
}

// A data set of one's own whose pixels stay, but not the mean that is taken off them.
TEST_F(Checkpoints, AnotherMeanIsOtherData) {
  const auto write_set = [](double mean) {
    std::vector<ArraySpec> specs;
    for (const std::string split : {"train", "test"}) {
      specs.push_back({.path = split + "/images", .shape = {16, 3, 32, 32}});
      specs.push_back({.path = split + "/labels", .shape = {16}, .type = ArrayType::i64});
    }
    ArrayWriter writer(path("set.h5"), specs);
    writer.set({"mean", std::vector<double>{mean}});
    writer.set({"std", std::vector<double>{0.25}});
    for (size_t i = 0; i < specs.size(); ++i) {
      std::vector<std::byte> rows(size_t(16 * specs[i].row_bytes()));
      rows[0] = std::byte(1);  // of labels, a second class
      writer.append(i, rows);
    }
    writer.finish();
  };
  const std::string words =
      "train --model resnet20 --batch 16 --microbatches 4 --dataset hdf5:set.h5 --profile p.json --classes "
      "10 "
      "--lr-schedule constant --checkpoint own --steps ";
  write_set(0.5);
  ran(words + "1");
  write_set(0.1);
  expect_refused(words + "2 --resume auto", 3, "mean and deviation is 0.5 0.5 0.5, 0.25 0.25 0.25 in the");
}

TEST_F(Checkpoints, OlderOnesThatSayLessAreTaken) {
  reseal(step(6), [](Manifest& m) { m.model.erase("dropout"), m.recipe.erase("mean and deviation"); });
  const ProgramRun usual = resume("--resume " + step(6));
  EXPECT_EQ(usual.code, 0) << usual.err;
  EXPECT_THAT(usual.err, Not(HasSubstr("older version")));
  const ProgramRun other = resume("--dropout 0 --resume " + step(6));
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("does not say its dropout: it is taken to be 0, as here"));
}

// A momentum of 0 keeps no slot. Checkpoints from before have one all the same, and are taken.
TEST_F(Checkpoints, ASlotThatIsNotKeptIsLeftOut) {
  ran(train_small + "--steps 1 --momentum 0 --checkpoint plain");
  const std::string plain = fmt::format("plain/step-{:012}", 1);
  for (const CheckpointFile& file :
       manifest_from_json(read_file(path(plain + "/manifest.json")), plain).files)
    for (const CheckpointTensor& tensor : file.tensors) EXPECT_THAT(tensor.path, Not(HasSubstr("/")));
  ran(train_small + "--steps 2 --momentum 0 --resume " + plain);
  refused("--steps 2 --resume " + plain, 3, "momentum is 0 in the");

  reseal(step(4), [](Manifest& m) { m.recipe["momentum"] = "0"; });
  const ProgramRun older = resume("--momentum 0 --resume " + step(4));
  EXPECT_EQ(older.code, 0) << older.err;
}

TEST_F(Checkpoints, WhatContradictsItselfIsRefusedHoweverItIsSealed) {
  const std::vector<std::function<void(TrainPosition&)>> forgeries = {
      [](TrainPosition& p) { p.batch = 3; },                 // an epoch has three: 0 to 2
      [](TrainPosition& p) { p.epoch = int64_t(1) << 62; },  //
      [](TrainPosition& p) { p.step = 5; },                  // of the sixth it says all else
      [](TrainPosition& p) { p.epoch_steps = 4; },           //
      [](TrainPosition& p) { p.epoch_loss = std::nan(""); }};
  for (const auto& forge : forgeries) {
    SetUp();
    reseal(step(6), [&](Manifest& m) { forge(m.position); });
    refused("--resume " + step(6), 3, "contradict each other");
  }
}

TEST_F(Checkpoints, ALongerRunSaysWhatItDoesToTheRate) {
  const ProgramRun longer = run(words_with("--epochs 2", "--epochs 3"));
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_THAT(longer.err, HasSubstr("course was to have 6 steps and now has 9"));
}

TEST_F(Checkpoints, AFolderOfAnotherRunIsNotMixed) {
  refused("--checkpoint now", 2, "now has checkpoints already");
  fs::copy(path(step(2)), path("step-000000000002"), fs::copy_options::recursive);
  refused("--checkpoint now --resume step-000000000002", 2, "elsewhere");
  fs::remove_all(path("step-000000000002"));
}

TEST_F(Checkpoints, WhatTornAttemptsLeftIsCleared) {
  fs::rename(path(step(6)), path("now/.partial-000000000006"));
  fs::create_directory(path("now/.removed-000000000001"));
  EXPECT_EQ(resume("--checkpoint now --keep 9 --resume auto").code, 0);
  EXPECT_TRUE(fs::exists(path(step(6))));
  EXPECT_FALSE(fs::exists(path("now/.partial-000000000006")));
  EXPECT_FALSE(fs::exists(path("now/.removed-000000000001")));
}

TEST_F(Checkpoints, MetricsOfSomethingElseAreNotCut) {
  write_file(path("metrics"), "a table of mine\n");
  refused("--metrics metrics --resume now", 3, "line 1 of metrics is none of metrics");
  EXPECT_EQ(read_file(path("metrics")), "a table of mine\n");
}

TEST_F(Checkpoints, OptionsThatMakeNoSense) {
  refused("--resume auto", 2, "--resume auto needs a folder");
  refused("--checkpoint-every 5", 2, "--checkpoint-every needs a folder");
  refused("--max-time 5", 2, "--max-time needs a folder");
  for (const char* every : {"0", "-1", "x", "5x", "1.5", "10 min", "99999999999"})
    EXPECT_EQ(resume(fmt::format("--checkpoint fresh2 --checkpoint-every={}", every)).code, 2) << every;
  for (const char* time : {"0", "-1", "h", "5x", "1h30", "nan"})
    EXPECT_EQ(resume(fmt::format("--checkpoint fresh2 --max-time={}", time)).code, 2) << time;
  refused("--checkpoint data/data_batch_1.bin", 3, "can't make the folder");
}

// Signals to a real process: one at once after its third step, from a shell beside it.
ProgramRun signalled(const std::string& launcher, const std::string& words, const std::string& signals) {
  const std::string folder = folder_of_small_job();
  write_file(folder + "/signal.sh",
             fmt::format("\"$@\" {} --metrics metrics & job=$!\n"
                         "until [ \"$(cat metrics 2>/dev/null | wc -l)\" -ge 3 ]; do sleep 0.05; done\n"
                         "{}\nwait $job\n",
                         words, signals));
  return run_behind(folder, "bash signal.sh " + launcher, "");
}

TEST_F(Checkpoints, ASignalStopsWithEverythingSaved) {
  const std::string words = train_small + "--lr-schedule constant --epochs 100000 --checkpoint signalled ";
  for (const char* signal : {"USR1", "TERM", "INT"}) {
    fs::remove_all(path("signalled")), fs::remove(path("metrics"));
    const ProgramRun result = signalled("", words, fmt::format("kill -{} $job", signal));
    antichain::expect_refused(result, 85, fmt::format("stopped by SIG{} after step ", signal), signal);
  }
  // Nothing between the steps before and after is missing or double.
  const size_t before = metrics(path("metrics")).size();
  ran(train_small + "--lr-schedule constant --checkpoint signalled --resume auto --metrics metrics --steps " +
      std::to_string(before + 5));
  int64_t expected = 0;
  for (const std::string& line : metrics(path("metrics")))
    if (const Json json = Json::parse(line); json.contains("step")) {
      EXPECT_EQ(json["step"], ++expected);
    }
  EXPECT_GE(expected, int64_t(before / 2));
}

TEST_F(Checkpoints, MpiASignalToOneRankStopsAll) {
  const std::string words = train_small + "--epochs 100000 --checkpoint signalled";
  // The last process that mpirun started is one rank.
  const ProgramRun result = signalled(mpi_launcher(2), words, "kill -USR1 $(pgrep -P $job | tail -1)");
  antichain::expect_refused(result, 85, "with everything saved in signalled/step-", "USR1 to one rank");
}

TEST_F(Checkpoints, ASecondSignalEndsAtOnce) {
  // It hangs in its fourth step, so the first signal can't be obeyed; a repetition soon after is that signal
  // again.
  const ProgramRun result =
      signalled("env ANTICHAIN_FAULT=hang:rank=0:step=3",
                train_small + "--epochs 100000 --checkpoint signalled --checkpoint-every 2",
                "sleep 0.5; kill -TERM $job $job; sleep 1; kill -0 $job && touch still-there; "
                "kill -INT $job");
  EXPECT_EQ(result.code, 128 + 2) << result.err;
  EXPECT_TRUE(fs::exists(path("still-there"))) << "one signal, told twice, ended it";
  EXPECT_THAT(result.err, HasSubstr("a second signal: ended at once, what was complete before stays"));
  EXPECT_TRUE(fs::exists(path("signalled/step-000000000002/manifest.json")));
}

TEST_F(Checkpoints, MaxTimeAndSlurmsEndStopInTime) {
  for (const char* launcher : {"", "env SLURM_JOB_END_TIME=$(($(date +%s)+8))"}) {
    SetUp();
    const auto start = std::chrono::steady_clock::now();
    const ProgramRun result = signalled(
        launcher,
        train_small + "--epochs 100000 --checkpoint signalled " + (*launcher ? "" : "--max-time 8s"), "true");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_EQ(result.code, 85) << result.err;
    EXPECT_THAT(result.err,  // there may be a warning, too: these images teach nothing
                HasSubstr(*launcher ? "the end of the job's time at Slurm" : "the end of --max-time 8s"));
    EXPECT_LT(took.count(), 60);  // of the hours that the epochs would take, on a busy machine too
  }
}

TEST_F(Checkpoints, AFolderInUseIsRefused) {
  const ProgramRun result = signalled(
      "", train_small + "--epochs 100000 --checkpoint signalled",
      fmt::format("'{}' {} --checkpoint signalled 2>second.txt; echo $? >>second.txt; kill -USR1 $job",
                  ANTICHAIN_PROGRAM, train_small));
  EXPECT_EQ(result.code, 85) << result.err;
  EXPECT_THAT(read_file(path("second.txt")),
              HasSubstr("the folder signalled is in use by another run, process "));
  EXPECT_THAT(read_file(path("second.txt")), ::testing::EndsWith("3\n"));
}

}  // namespace
}  // namespace antichain
