// Every mistake is answered by one sentence and a documented code, before any work is done.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/small_job.h"

namespace antichain {
namespace {

using Refusals = SmallJob;

TEST_F(Refusals, AnswersMistypedWordsWithTheNearest) {
  expect_refused("", 2, "a command is missing");
  expect_refused("trian", 2, "did you mean 'train'");
  expect_refused("train --modle resnet18", 2, "did you mean --model?");
  expect_refused("train --model resnet19", 2, "did you mean 'resnet18'");
  expect_refused("info --model vgg17", 2, "did you mean 'vgg16'");
  expect_refused("train --dataset cifar11", 2, "did you mean 'cifar10'");
  expect_refused("train --device gpu", 2, "there is no device 'gpu': did you mean 'cuda'?");
  expect_refused("train --augment device", 2, "the ranks compute on the CPU");
  expect_refused("train --shard-optimiser on", 2, "among replicas, but there are none");
  expect_refused("plan --method uniforn --profile p.json", 2, "did you mean 'uniform'");
  expect_refused("plan --objective fast --profile p.json", 2, "compute-or-transfer");
  expect_refused("train --lr-schedule cosin", 2, "did you mean 'cosine'");
  expect_refused(std::string("train --schedule 1f2b") + given, 2, "did you mean '1f1b'");
  expect_refused(std::string("train --schedule forward-only") + given, 2, "forward-only");
}

TEST_F(Refusals, RefusesNumbersThatMakeNoSense) {
  const char* cases[] = {"--steps 0",
                         "--steps -1",
                         "--epochs 0",
                         "--lr nan",
                         "--lr 0",
                         "--lr inf",
                         "--momentum nan",
                         "--momentum -1",
                         "--microbatches 0",
                         "--batch 0",
                         "--batch 1000000000",
                         "--weight-decay nan",
                         "--threads 0",
                         "--label-smoothing 1",
                         "--local 0",
                         "--local 100000",
                         "--watchdog nan",
                         "--seed -1",
                         "--stages 0",
                         "--link-latency-s -1"};
  for (const std::string words : cases)
    expect_refused("train " + words, 2, words.substr(0, words.find(' ')) + " takes a");
  expect_refused("train --batch 10 --microbatches 4", 2, "4 micro-batches of equal size");
  expect_refused("train --quiet=maybe", 2, "--quiet takes no value but true or false, not 'maybe'");
  expect_refused("train --at-most=3", 2, "--at-most takes no value");
  expect_refused("train --keep 3", 2, "--keep requires --checkpoint");
  expect_refused("evaluate --model resnet20 --weights w.h5 --format hdf5", 2, "--format requires --logits");
  expect_refused("train --ema 1", 2, "--ema takes a number from 0 to less than 1, not '1'");
  expect_refused("simulate --profile p.json --stages 2 --microbatches 100000", 2, "--microbatches takes");
}

TEST_F(Refusals, RefusesPatternsThatMatchNothingAndNetworksOfWhichNothingIsTrained) {
  const std::string plan = "plan --model resnet20 --stages 2 ";
  expect_refused(plan + "--freeze 'conv1.*,layer1.*,stem.*'", 2,
                 "--freeze 'stem.*' matches no parameter of 'resnet20'");
  expect_refused(plan + "--freeze '*.running_mean'", 2, "matches no parameter");
  expect_refused(plan + "--freeze '*'", 2, "all parameters of 'resnet20' are frozen");
  expect_refused("info --freeze '*'", 2, "--freeze is for the nodes of one network");
  const std::string train = "train --steps 1 --data-dir data --freeze 'conv1.*' --batch 16 ";
  expect_refused(train + "--lr-of 'conv1.*=0.1'", 2, "--lr-of 'conv1.*' matches no trained parameter");
  expect_refused(train + "--decay-of 'fc=0'", 2, "--decay-of 'fc' matches no trained parameter");
  expect_refused(train + "--decay-of fc", 2, "--decay-of takes PATTERN=X");
}

// A command refuses an option that would change nothing.
TEST_F(Refusals, RefusesOptionsThatNothingReads) {
  const std::string checkpoint = "evaluate --weights ck ",
                    rehearse = "train --device rehearse:p.json --local 2 ",
                    profiled = "plan --profile p.json --stages 2 ", simulate = "simulate --profile p.json ";
  ran("export --model resnet20 --out w.h5");
  ran("export --model resnet20 --out net.antichain");
  expect_refused("info --batch 8", 2, "--batch is for the nodes of one network, and none is named");
  for (const char* from : {"--model resnet20 --init w.h5", "--graph net.antichain"})
    expect_refused(std::string("export --seed 1 --out x.h5 ") + from, 2, "--seed draws weights, but all are");
  ran("export --seed 1 --out x.h5 --model resnet20 --init-partial w.h5");
  for (const std::string option : {"--form cifar", "--classes 10", "--aux 0"})
    expect_refused(checkpoint + option, 2, option.substr(0, option.find(' ')) + " requires --model");
  expect_refused("gradients --model resnet20 --weights w.h5 --images b.h5 --format hdf5", 2,
                 "--format requires --out");
  for (const std::string option : {"--device cpu", "--threads 2", "--transport mpi", "--cpu-isa avx2"})
    expect_refused(profiled + option, 2, "--profile excludes " + option.substr(0, option.find(' ')));
  for (const std::string& words : {profiled, simulate + "--stages 2 ", rehearse})
    expect_refused(words + "--backward-split 0.3", 2, "but p.json has those of both halves");
  expect_refused("plan --stages 2 --backward-split 0.3", 2, "but a profile is to be measured here");
  expect_refused(simulate + "--stages 2 --width 90 --compare-schedules", 2,
                 "--compare-schedules excludes --width");
  expect_refused(simulate + "--plan plan.json --stages 1 --at-most", 2,
                 "is a plan of 2 stages, but --stages 1");
  ran(simulate + "--plan plan.json --stages 3 --at-most");
  // The options of train may not contradict the profile that is rehearsed.
  expect_refused(rehearse + "--model vgg16", 2,
                 "the model vgg16 is given, but p.json is the profile of resnet20");
  expect_refused(rehearse + "--precision bf16", 2, "but p.json is the profile of float32");
  expect_refused(rehearse + "--batch 64", 2, "a batch of 64 in 8 micro-batches is given, but p.json is");
  ran(rehearse + network + "--precision float32");
}

TEST_F(Refusals, RefusesFilesThatCantBeUsed) {
  const std::string with = std::string("train --local 2") + given;
  expect_refused(with + "--plan nowhere.json", 3, "nowhere.json");
  expect_refused(with + "--plan malformed.json", 3, "malformed.json:2");
  expect_refused(with + "--plan twice.json", 3, "\"model\" stands twice");
  expect_refused(with + "--plan other.json", 3, "for the model vgg16");
  expect_refused(with + "--plan cyclic.json", 3, "cycle");
  expect_refused(with + "--plan empty.json", 3, "empty");
  expect_refused("train --local 3 --plan plan.json" + std::string(given), 2, "the plan is for 2 ranks");
  expect_refused(with + "--stages 3", 2, "--stages 3 is for 3 ranks, but the job has 2");
  expect_refused(with + "--plan plan.json --stages 3", 2, "plan.json is a plan of 2 stages, but --stages 3");
  expect_refused("simulate --profile p.json --plan plan.json --stages 3", 2, "but --stages 3 is asked for");
  expect_refused("plan --profile p.json --stages 1000", 2, "1000 stages");
  expect_refused("plan --profile malformed.json", 3, "malformed.json:2");
  expect_refused("train --config nowhere.toml", 3, "nowhere.toml");
  std::filesystem::create_symlink("loop", path("loop"));
  const std::string long_name(300, 'n');
  for (const std::string& file :
       {std::string("loop"), long_name, std::string("/dev/zero"), std::string("/proc/self/mem")})
    for (const char* option : {"--config ", "--plan ", "--cluster ", "--init ", "--profile "})
      expect_refused(
          "train " + std::string(option == std::string("--profile ") ? network : given) + " " + option + file,
          3, file == long_name ? "File name too long" : file);
  expect_refused("train --model vgg16 --batch 16 --microbatches 4 --data-dir data --profile p.json", 3,
                 "the profile of resnet20");
  expect_refused("simulate --profile p.json --plan plan.json --schedule p.json", 3, "p.json");
}

// Nothing is measured for a job whose number of ranks can't be right: the data is not even looked for.
TEST_F(Refusals, RefusesAnotherNumberOfRanksAtOnce) {
  const std::string train =
      "train --profile-cache none --init nowhere.h5 --data-dir data" + std::string(network) + " --local ";
  expect_refused(train + "2 --stages 3", 2, "--stages 3 is for 3 ranks, but the job has 2");
  expect_refused(train + "3 --stages 2 --at-most", 2, "--stages 2 is for 2 ranks, but the job has 3");
  expect_refused(train + "2 --replicas 2,1", 2, "--replicas 2,1 is for 3 ranks, but the job has 2");
  expect_refused(train + "3 --plan plan.json", 2, "the plan is for 2 ranks, but the job has 3");
  for (const char* right : {"2 --stages 3 --at-most", "3 --stages 3 --replicas auto", "3 --replicas 2,1"})
    expect_refused(train + right, 3, "nowhere.h5");
}

// A job is checked before it waits in a queue: without ranks, data and files that only nodes may see.
TEST_F(Refusals, ADryRunChecksTheOptionsAlone) {
  for (const char* right : {"train --data-dir nowhere --init no.h5 --plan no.json --results no/x",
                            "train --device auto --local 2", "profile --json no/p.json --device cuda --tune",
                            "evaluate --weights no.h5 --model resnet20 --data-dir nowhere", "doctor",
                            "plan --profile no.json --stages 2", "rehearse --profile no.json --stages 2"}) {
    const ProgramRun result = run(right + std::string(" --dry-run"));
    EXPECT_EQ(result.code, 0) << right << result.err;
    EXPECT_EQ(result.out, "antichain " + std::string(right).substr(0, std::string(right).find(" --")) +
                              ": nothing is wrong with the options, and nothing was run\n");
  }
  expect_refused("train --dry-run --modle resnet20", 2, "did you mean --model?");
  expect_refused("train --dry-run --batch 10 --microbatches 4", 2, "4 micro-batches of equal size");
  expect_refused("train --dry-run --local 2 --stages 3", 2, "--stages 3 is for 3 ranks, but the job has 2");
  expect_refused("train --dry-run --resume auto", 2, "needs a folder for checkpoints");
  EXPECT_EQ(run_behind(path(""), "env SLURM_JOB_ID=1 SLURM_NTASKS=4", "train --dry-run").code, 0);
}

TEST_F(Refusals, ExperimentsNameTheirNewCommand) {
  expect_refused("experiment speedup --launcher 'mpirun -n {}'", 2,
                 "start python3 -m antichain.experiments speedup --launcher 'mpirun -n {}'");
  expect_refused("experiment --help", 2, "start python3 -m antichain.experiments --help");
}

TEST_F(Refusals, RefusesDataThatCantBeUsed) {
  const std::string with = std::string("train --profile p.json") + network;
  expect_refused(with + "--data-dir nowhere", 3, "no such data folder");
  expect_refused(with + "--data-dir nothing", 3, "data_batch_1.bin");
  expect_refused(with + "--data-dir truncated", 3, "truncated");
  expect_refused(with + "--data-dir label", 3, "record 5 has label 10");
  expect_refused("train --batch 64 --microbatches 4 --data-dir data", 3, "larger than the training set");
  // The sentence has a table below it, so it is not the only line.
  antichain::expect_refused(run("profile --batch 1000000 --microbatches 1"), 5,
                            "measuring this network needs", "profile");
}

TEST_F(Refusals, FindsOutBeforeTheWorkThatAResultCantBeWritten) {
  for (const std::string option : {"--metrics", "--trace", "--json"})
    expect_refused("train " + option + " no/x" + given, 3, "there is no folder no");
  expect_refused(std::string("train --metrics /proc/x") + given, 3, "/proc/x");
  expect_refused("profile --json no/p.json", 3, "there is no folder no");
  expect_refused("simulate --profile p.json --stages 2 --trace no/x", 3, "there is no folder no");
  expect_refused("info --json no/x", 3, "there is no folder no");
}

}  // namespace
}  // namespace antichain
