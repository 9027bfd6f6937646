// These tests say what each option of train changes. An option that is new must say so here as well.
#include "app/train/train_options.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <map>
#include <set>

#include "app/cli/command_line.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// A Train is the command with its options.
struct Train {
  CLI::App app;
  TrainCommandOptions options;
  CLI::App& command = add_command(app, "train", "", "");
  Train() { add_train_options(command, options); }
};

std::map<std::string, std::set<std::string>> by_kind() {
  std::map<std::string, std::set<std::string>> kinds;
  for (const Train train; const OptionRow& row : rows_of(train.command))
    EXPECT_TRUE(kinds[name_of(row.changes.kind)].insert(row.setting()).second) << row.name << " stands twice";
  return kinds;
}

TEST(TrainOptions, AreThese) {
  const std::map<std::string, std::set<std::string>> expected = {
      {"network",
       {"aux", "classes", "dropout", "form", "freeze", "graph", "image", "label-smoothing", "model",
        "precision", "sequence", "soft-labels", "stochastic-depth", "vocabulary"}},
      {"recipe",
       {"batch",
        "annealing-steps",
        "beta1",
        "beta2",
        "clip-norm",
        "crop",
        "decay-of",
        "lr-of",
        "cutmix",
        "decay-groups",
        "delay-correction",
        "ema",
        "epsilon",
        "erase",
        "evaluate-every",
        "flip",
        "lr",
        "lr-decay",
        "lr-final",
        "lr-milestones",
        "lr-rise",
        "lr-schedule",
        "microbatches",
        "mixup",
        "momentum",
        "nesterov",
        "optimiser",
        "pack",
        "pad",
        "predict",
        "seed",
        "synchronous-steps",
        "trivial-augment",
        "warmup-epochs",
        "warmup-steps",
        "weight-decay"}},
      {"data", {"data-dir", "dataset", "inputs", "targets"}},
      {"last bits", {"cpu-isa", "device", "method", "plan", "replicas", "threads", "weight-gradients"}},
      {"extent",
       {"emulate-delays", "epochs", "init", "init-partial", "max-time", "on-nan", "patience", "resume",
        "steps"}},
      {"speed", {"at-most",         "augment",       "backward-split", "chunks",
                 "cluster",         "cuts",          "in-flight",      "link-bytes-per-s",
                 "link-latency-s",  "local",         "max-states",     "memory-bytes",
                 "objective",       "overlap-steps", "profile",        "profile-cache",
                 "profile-seconds", "rebalance",     "recompute",      "schedule",
                 "shard-optimiser", "stages",        "transport",      "watchdog"}},
      {"output",
       {"checkpoint", "checkpoint-every", "config", "dry-run", "json", "keep", "keep-best", "metrics",
        "quiet", "results", "trace"}}};
  EXPECT_EQ(by_kind(), expected);
}

TEST(TrainOptions, WhatChangesNumbersIsInManifests) {
  std::set<std::string> facts;
  for (const Train train; const OptionRow& row : rows_of(train.command)) {
    const bool compared = row.changes.kind == OptionKind::network || row.changes.kind == OptionKind::recipe;
    const std::string fact = row.changes.fact;
    EXPECT_EQ(!fact.empty(), compared && row.setting() != "image") << row.name;
    if (fact.empty()) continue;
    EXPECT_TRUE(facts.insert(fact).second) << fact;
    EXPECT_NE(row.fact(), "") << row.name;
  }
}

// Manifests of earlier revisions lack these facts. What they were trained with are the defaults.
TEST(TrainOptions, TheDefaultsAreThoseOfOlderManifests) {
  const std::map<std::string, std::string> expected = {{"graph file", "none"},
                                                       {"dropout", "0.5"},
                                                       {"stochastic depth", "0"},
                                                       {"soft labels", "false"},
                                                       {"crop", "black"},
                                                       {"flip", "true"},
                                                       {"TrivialAugment", "false"},
                                                       {"share of erased images", "0"},
                                                       {"mixup", "0"},
                                                       {"cutmix", "0"},
                                                       {"milestones", "0.5,0.75"},
                                                       {"decay at milestones", "0.1"},
                                                       {"final learning rate", "0"},
                                                       {"share of the rise", "0.3"},
                                                       {"optimiser", "sgd"},
                                                       {"beta1", "0.9"},
                                                       {"beta2", "0.999"},
                                                       {"epsilon", "1e-08"},
                                                       {"groups of weight decay", "all"},
                                                       {"largest norm of the gradients", "0"},
                                                       {"decay of the weights' average", "0"},
                                                       {"steps between evaluations", "0"},
                                                       {"frozen parameters", "none"},
                                                       {"learning rates of parameters", "none"},
                                                       {"weight decays of parameters", "none"}};
  std::map<std::string, std::string> usual;
  for (const Train train; const OptionRow& row : rows_of(train.command))
    usual[row.changes.fact] = row.usual_fact;
  for (const auto& [fact, value] : expected) EXPECT_EQ(usual[fact], value) << fact;
}

TEST(TrainOptions, AnOptionThatDoesNotSayWhatItChangesIsFound) {
  Train train;
  EXPECT_NO_THROW(check_every_option_says_what_it_changes(train.command));
  bool forgotten = false;
  add_option(train.command, "", "--forgotten", forgotten, {}, "");
  EXPECT_ANY_THROW(check_every_option_says_what_it_changes(train.command));
}

TEST(TrainOptions, ListsAddUpByCommasAndByTheOptionGivenAgain) {
  Train train;
  parse_and_run(train.app, {"train", "--model", "resnet20", "--freeze", "a.*,b", "--lr-of", "x=0.5",
                            "--freeze=c.?", "--lr-of=*.y=1e-3"});
  EXPECT_EQ(train.options.network.freeze, (std::vector<std::string>{"a.*", "b", "c.?"}));
  EXPECT_EQ(train.options.optimiser.rate_of, (std::vector<std::string>{"x=0.5", "*.y=1e-3"}));
  std::map<std::string, std::string> facts;
  for (const OptionRow& row : rows_of(train.command)) facts[row.changes.fact] = row.fact();
  EXPECT_EQ(facts["frozen parameters"], "a.*,b,c.?");
  for (const char* wrong : {"x", "=1", "x=", "x=-1", "x=1e9", "x=nan"})
    expect_error(
        [&] {
          Train other;
          parse_and_run(other.app, {"train", "--model", "resnet20", "--lr-of", wrong});
        },
        {"--lr-of", wrong});
}

TEST(TrainOptions, NesterovIsSaidEitherWayAndTheLastWordCounts) {
  const auto nesterov = [](const std::vector<std::string>& words) {
    Train train;
    std::vector<std::string> all = {"train", "--model", "resnet20"};
    all.insert(all.end(), words.begin(), words.end());
    parse_and_run(train.app, all);
    return train.options.optimiser.nesterov;
  };
  EXPECT_TRUE(nesterov({}));
  EXPECT_TRUE(nesterov({"--nesterov"}));
  EXPECT_FALSE(nesterov({"--no-nesterov"}));
  EXPECT_FALSE(nesterov({"--nesterov=false"})) << "as a settings file says it";
  EXPECT_TRUE(nesterov({"--no-nesterov", "--nesterov"}));
  EXPECT_FALSE(nesterov({"--nesterov", "--no-nesterov"}));
}

}  // namespace
}  // namespace antichain
