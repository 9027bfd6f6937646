// These tests say what a run keeps, and that it is no success where something was not kept. They are about
// weights and settings of --results, about checkpoints on full disks and on disks that the hosts do not
// share, about damaged checkpoints, and about numbers that are none.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/files/checkpoint_folder.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string train_and_keep =
    "train --model resnet20 --batch 16 --microbatches 4 --data-dir data --lr 0.0123456789 --seed 7 "
    "--lr-schedule constant --profile p.json ";
constexpr int bad_input = 3, not_a_number = 6;

// On a busy machine a log has one; standard output never has.
std::string without_warnings(const std::string& log) {
  std::istringstream in(log);
  std::string rest;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("antichain: ")) rest += line + "\n";
  return rest;
}

class Keeping : public InACopyOfTheJob {
 protected:
  // Returns whether a test may change what is mounted, in a name space of its own.
  static bool may_mount() { return std::system("unshare -m mount -t tmpfs none /mnt >/dev/null 2>&1") == 0; }
  // Runs the program where `full` is a small disk.
  ProgramRun run_on(const std::string& disk, const std::string& words) const {
    fs::create_directories(path("full"));
    return run_behind(folder_.str(), "unshare -m sh -c 'mount -t tmpfs -o " + disk + " && exec \"$@\"' sh",
                      train_and_keep + words);
  }
};

TEST_F(Keeping, ResultsHoldWeightsSettingsAndLog) {
  const std::string result = ran(train_and_keep + "--local 2 --steps 3 --results r --checkpoint ck");
  EXPECT_THAT(result.substr(0, 1000),
              HasSubstr("Keeping   weights and log in r at the end, checkpoints in ck"));
  // The weights are those of the last checkpoint.
  ran("export --model resnet20 --init ck --out last.h5");
  ran("export --model resnet20 --init r/weights.h5 --out kept.h5");
  EXPECT_EQ(read_file(path("kept.h5")), read_file(path("last.h5")));
  const Json settings = json("r/run.json")["settings"];
  EXPECT_EQ(settings["batch"], 16);
  EXPECT_EQ(settings["lr"], 0.0123456789);
  EXPECT_EQ(settings["momentum"], 0.9) << "a default";
  EXPECT_EQ(settings["weight-decay"], 0.0005);
  EXPECT_EQ(settings["lr-schedule"], "constant");
  EXPECT_EQ(settings["steps"], 3);
  EXPECT_EQ(settings["nesterov"], true);
  EXPECT_EQ(settings["stages"], nullptr) << "neither given nor of any value";
  const Json summary = json("r/summary.json");
  EXPECT_TRUE(summary["final_loss"].is_number());
  EXPECT_TRUE(summary["final_accuracy"].is_number());
  EXPECT_THAT(result, HasSubstr(fmt::format("Last step      loss {:.4f}, accuracy {:.2f} %",
                                            summary["final_loss"].get<double>(),
                                            100 * summary["final_accuracy"].get<double>())));
  EXPECT_EQ(without_warnings(read_file(path("r/log.txt"))), result);
  // This makes the same run again.
  ran("train --config r/config.toml --results again");
  EXPECT_EQ(json("again/summary.json")["state"], summary["state"]);
}

TEST_F(Keeping, ARunThatKeepsNothingSaysSoInItsFirstLines) {
  const std::string result = ran(train_and_keep + "--steps 1");
  const std::string head = result.substr(0, result.find("Data"));
  EXPECT_THAT(head, HasSubstr("Keeping   nothing"));
  EXPECT_THAT(head, HasSubstr("--results DIR"));
}

TEST_F(Keeping, ARunWhoseLastCheckpointFailsIsNoSuccess) {
  if (!may_mount()) GTEST_SKIP() << "no right to mount a small disk";
  const ProgramRun result = run_on("size=100k none full", "--steps 1 --checkpoint full/ck --json s.json");
  EXPECT_EQ(result.code, bad_input) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("training is done, but its last checkpoint could not be saved: can't write"));
  EXPECT_EQ(json("s.json")["steps"], 1) << "all else is told";
}

TEST_F(Keeping, ARunWhoseWeightsAreNotKeptIsNoSuccess) {
  if (!may_mount()) GTEST_SKIP() << "no right to mount a small disk";
  const ProgramRun result = run_on("size=400k none full", "--steps 1 --results full/r");
  EXPECT_EQ(result.code, bad_input) << result.err;
  EXPECT_THAT(result.err, HasSubstr("training is done, but its weights could not be kept: can't write"));
}

TEST_F(Keeping, AFullDiskForMetricsEndsNothingElse) {
  if (!may_mount()) GTEST_SKIP() << "no right to mount a small disk";
  const ProgramRun result = run_on("size=4k none full && head -c 4096 /dev/zero >full/all",
                                   "--steps 2 --metrics full/m.jsonl --json s.json --checkpoint ck");
  EXPECT_EQ(result.code, bad_input) << result.err;
  EXPECT_THAT(result.err, HasSubstr("full/m.jsonl takes no line now, training goes on"));
  EXPECT_THAT(result.err, HasSubstr("training is done, but its metrics are not complete: full/m.jsonl"));
  EXPECT_EQ(json("s.json")["steps"], 2);
  EXPECT_EQ(CheckpointFolder(path("ck")).list().size(), 1u);
}

// Two hosts, of which each has a disk of its own under the folder's name.
TEST_F(Keeping, MpiHostsThatDoNotShareTheFolderAreRefused) {
  if (!may_mount()) GTEST_SKIP() << "no right to mount another disk";
  ran(train_and_keep + "--steps 2 --checkpoint ck --checkpoint-every 1");
  fs::copy(path("ck"), path("other"), fs::copy_options::recursive);
  const std::string words = train_and_keep + "--steps 4 --checkpoint ck --checkpoint-every 1 --resume auto";
  const ProgramRun result = run_under_mpi(
      folder_.str(), 1,
      fmt::format("{} : -n 1 unshare -m sh -c 'mount --bind other ck && exec \"$@\"' sh '{}' {}", words,
                  ANTICHAIN_PROGRAM, words));
  antichain::expect_refused(result, bad_input, "rank 1 on ", words);
  EXPECT_THAT(result.err, HasSubstr("does not see what rank 0 on "));
  EXPECT_EQ(CheckpointFolder(path("ck")).list().size(), 2u) << "none was removed";
  EXPECT_EQ(run(words).code, 0) << "and they are as good as before";
}

TEST_F(Keeping, TheNewestWholeCheckpointOfAFolderIsTested) {
  ran(train_and_keep + "--steps 2 --checkpoint ck --checkpoint-every 1");
  const std::string newest = CheckpointFolder(path("ck")).of_step(2);
  EXPECT_THAT(run("doctor --checkpoint ck").out, HasSubstr("the newest of 2 checkpoints is whole"));
  fs::resize_file(newest + "/stage-0.h5", 1000);
  const ProgramRun result = run("evaluate --model resnet20 --weights ck --data-dir data");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("stage-0.h5 has 1000 bytes"));
  EXPECT_THAT(result.err, HasSubstr("going on from the older ck/step-000000000001"));
  const ProgramRun doctor = run("doctor --checkpoint ck --json d.json");
  EXPECT_THAT(doctor.out, HasSubstr("stage-0.h5 has 1000 bytes"));
  EXPECT_THAT(read_file(path("d.json")),
              HasSubstr("\"health\": \"warning\",\n      \"about\": \"saved runs\""));
  fs::remove_all(CheckpointFolder(path("ck")).of_step(1));
  const ProgramRun none = run("doctor --checkpoint ck");
  EXPECT_EQ(none.code, bad_input);
  EXPECT_THAT(none.out, HasSubstr("no checkpoint in ck can be used"));
}

TEST_F(Keeping, NoFileIsLostByASlip) {
  const std::string one = train_and_keep + "--steps 1 --json x --metrics ./x";
  expect_refused(one, 2, "--metrics and --json would be written to one file");
  const std::string before = read_file(path("p.json"));
  for (const std::string& words : {train_and_keep + "--steps 1 --json p.json",
                                   std::string("plan --profile p.json --stages 2 --json ./p.json")})
    expect_refused(words, 2, "p.json, which --profile reads");
  EXPECT_EQ(read_file(path("p.json")), before);
  for (const char* name : {"metrics.jsonl", "run.json"}) {
    write_bytes(folder_.path() / name / name, {'x', '\n'});
    const std::string words = train_and_keep + "--steps 1 --results " + name;
    expect_refused(words, 2, fmt::format("has a file {0} that is of no run", name));
    EXPECT_EQ(read_file(path(std::string(name) + "/" + name)), "x\n");
  }
}

// However the two names are spelt, and whoever reads the file.
TEST_F(Keeping, NoOutputReplacesWhatIsReadOrKept) {
  const std::string train = train_and_keep + "--steps 1 ";
  for (const char* words : {"data pack --cifar data --out set.h5", "export --model resnet20 --out w.h5",
                            "export --model resnet20 --out n.antichain", "info --json q.json"})
    ASSERT_EQ(run(words).code, 0) << words;
  ran(train + "--checkpoint ck --results r");
  fs::create_directory(path("new"));
  fs::create_symlink("set.h5", path("link.h5"));
  fs::create_hard_link(path("data/test_batch.bin"), path("hard"));
  fs::create_directory_symlink("data", path("linked"));
  write_bytes(folder_.path() / "photos/cat/1.png", {1});
  write_file(path("empty"), ""), write_file(path("q.json"), " \n" + read_file(path("q.json")));
  for (const char* words : {"info --json empty", "info --json q.json"})
    EXPECT_EQ(run(words).code, 0) << words;
  const std::string checkpoint = "ck/step-000000000001/", data = "a file of the data set",
                    evaluate = "evaluate --model resnet20 --weights ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {train + "--trace data/data_batch_1.bin", "it is no JSON"},
      {train + "--json linked/data_batch_1.bin", "it is no JSON"},
      {train + "--metrics hard", "it is no JSON"},
      {"data pack --cifar data --out data/test_batch.bin", "it is no file of HDF5 or safetensors"},
      {"data pack --images photos --out photos/cat/1.png", "it is no file of HDF5 or safetensors"},
      {"data batches --dataset hdf5:set.h5 --steps 1 --batch 8 --format hdf5 --out hard", "it is no file"},
      {"data batches --dataset hdf5:set.h5 --steps 1 --batch 8 --out ./set.h5", data},
      {evaluate + "w.h5 --dataset hdf5:set.h5 --json link.h5", "it is no JSON"},
      {evaluate + "ck --data-dir data --json " + checkpoint + "manifest.json", "which lies in a checkpoint"},
      {"compare p.json q.json --json p.json", "p.json, which A reads"},
      {"check --graph n.antichain --json n.antichain/graph.json", "which --graph reads"},
      {"info --graph n.antichain/graph.json --json n.antichain/weights.safetensors", "which --graph reads"},
      {"export --graph n.antichain/graph.json --out n.antichain", "which --graph reads"},
      {train + "--checkpoint z --results ./z/", "would be written to one folder"},
      {train + "--checkpoint new --json new/lock", "which --checkpoint writes"},
      {evaluate + "ck --data-dir data --format hdf5 --logits ck/lock", "ck/lock, which belongs to a run"},
      {"info --json ck/step-000000000009", "which belongs to a run"},
      {train + "--results ck/best", "--results would write to ck/best, which belongs to a run"},
      {train + "--checkpoint " + checkpoint, "which lies in a checkpoint"},
      {train + "--results ck/step-000000000001", "which is a checkpoint"},
      {"export --model resnet20 --out r/weights.h5", "r/weights.h5, which belongs to a run"},
      {"plan --profile p.json --stages 2 --json r/plan.json", "which belongs to a run"},
      {"compare r r --json r/summary.json", "which belongs to a run"},
      {train + "--results z --json z/run.json", "which --results writes"},
      {train + "--results z --json z/metrics.jsonl", "which --results writes"}};
  for (const auto& [words, part] : cases) expect_refused(words, 2, part);
  for (const char* name : {"data/data_batch_1.bin", "data/test_batch.bin"})
    EXPECT_EQ(fs::file_size(path(name)), name[5] == 'd' ? 48 * 3073u : 23 * 3073u) << name;
  EXPECT_EQ(run("evaluate --weights ck --dataset hdf5:set.h5 --json ck/of.json").code, 0) << "beside them";
  EXPECT_EQ(run("plan --profile r/profile.json --stages 1 --json r/one.json").code, 0) << "beside them";
}

TEST_F(Keeping, WhatTheProgramDidNotMakeIsNotReplacedByTheBest) {
  const std::string words = train_and_keep + "--steps 1 --keep-best --checkpoint ";
  write_bytes(folder_.path() / "a/best/notes.txt", {'x'});
  write_bytes(folder_.path() / "b/best", {'x'});
  fs::create_directories(path("c"));
  fs::create_directory_symlink("../a", path("c/best"));
  for (const std::string name : {"a", "b", "c"})
    expect_refused(words + name, 2, fmt::format("--keep-best would replace {}/best", name));
  EXPECT_EQ(read_file(path("a/best/notes.txt")), "x");
  EXPECT_EQ(read_file(path("b/best")), "x");
  EXPECT_TRUE(fs::is_symlink(path("c/best")));
}

TEST_F(Keeping, ResultsOfARunThatEndedStay) {
  const std::string words = train_and_keep + "--results r ";
  ran(words + "--steps 1 --json j.json --metrics m.jsonl");
  EXPECT_EQ(read_file(path("r/summary.json")), read_file(path("j.json"))) << "the folder has all of it";
  EXPECT_EQ(read_file(path("r/metrics.jsonl")), read_file(path("m.jsonl")));
  fs::remove(path("r/summary.json"));
  const std::string weights = read_file(path("r/weights.h5"));
  expect_refused(words + "--steps 1 --json j.json", 2, "holds the results of a run that has ended");
  const std::string other = train_and_keep + "--seed 9 --steps 1 --checkpoint ck ";
  ran(other);
  expect_refused(other + "--resume auto --results r", 2, "of another run that has ended: --seed was 7");
  EXPECT_EQ(read_file(path("r/weights.h5")), weights);
}

TEST_F(Keeping, TheAveragesOfACheckpointAreExportedAndTested) {
  const std::string train = train_and_keep + "--local 2 --steps 3 ";
  ran(train + "--ema 0.5 --checkpoint ck --results r");
  ran("export --model resnet20 --init ck/ema --out e.h5");
  ran("export --model resnet20 --init ck --out w.h5");
  const Weights averages = read_weights(path("e.h5")), weights = read_weights(path("w.h5"));
  EXPECT_TRUE(*averages.find("conv1.weight") == *read_weights(path("r/weights-ema.h5")).find("conv1.weight"));
  EXPECT_FALSE(*averages.find("conv1.weight") == *weights.find("conv1.weight"));
  EXPECT_TRUE(*averages.find("bn1.running_mean") == *weights.find("bn1.running_mean"));
  const std::string evaluate = "evaluate --data-dir data --json ";
  ASSERT_EQ(run(evaluate + "a.json --weights ck/ema").code, 0) << "the checkpoint names the model";
  ran(evaluate + "b.json --weights e.h5 --model resnet20");
  EXPECT_EQ(json("a.json"), json("b.json"));
  ran(train + "--checkpoint plain");
  expect_refused("export --model resnet20 --init plain/ema --out x.h5", bad_input,
                 "has no averaged weights: its run was without --ema");
}

TEST_F(Keeping, BatchesThatDoNotFitAreRefusedWithTheirSize) {
  const std::string words = "data batches --data-dir data --batch 8 --steps 900000000 --out b.h5";
  expect_refused(words, bad_input, "b.h5 would have 80.52 TiB, but ");
  EXPECT_FALSE(fs::exists(path("b.h5")));
}

TEST_F(Keeping, NumbersThatAreNoneAreNoResult) {
  ran("export --model resnet20 --out w.h5");
  const auto spoilt = [&](const std::string& name, const std::string& tensor, float value) {
    Weights weights;
    for (NamedTensor t : read_weights(path("w.h5"))) {
      if (t.name == tensor) std::get<0>(t.values)[1] = value;
      weights.add(std::move(t));
    }
    write_weights(path(name), weights, WeightFormat::hdf5);
  };
  spoilt("nan.h5", "layer1.0.conv1.weight", std::nanf(""));
  spoilt("negative.h5", "bn1.running_var", -1);
  spoilt("large.h5", "conv1.weight", 1e38f);
  const std::string evaluate = "evaluate --model resnet20 --data-dir data --weights ";
  expect_refused(evaluate + "nan.h5", not_a_number,
                 "nan.h5: 'layer1.0.conv1.weight' has a NaN (element 2 of ");
  expect_refused(evaluate + "negative.h5", not_a_number, "'bn1.running_var' has the variance -1");
  expect_refused(evaluate + "large.h5", not_a_number, "the output of node ");
  const std::string init = train_and_keep + "--steps 1 --init negative.h5";
  expect_refused(init, not_a_number, "'bn1.running_var' has the variance -1 (element 2 of 16)");
  ran("data batches --data-dir data --steps 1 --batch 8 --out b.h5");
  const std::string gradients = "gradients --model resnet20 --microbatches 2 --weights w.h5 --images ";
  ran(gradients + "b.h5");
  Weights images;
  for (NamedTensor t : read_weights(path("b.h5"))) {
    if (t.name == "images") std::get<0>(t.values)[5] = std::numeric_limits<float>::infinity();
    images.add(std::move(t));
  }
  write_weights(path("bad.h5"), images, WeightFormat::hdf5);
  expect_refused(gradients + "bad.h5", not_a_number, "'images' has an infinite number (element 6 of ");
}

}  // namespace
}  // namespace antichain
