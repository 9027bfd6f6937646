// These tests say what each option of train changes. An option that is new must say so here as well.
#include "app/train/train_option_kinds.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/cli/command_line.h"
#include "framework/error.h"

namespace antichain {
namespace {

std::map<std::string, std::set<std::string>> by_kind() {
  std::map<std::string, std::set<std::string>> kinds;
  for (const TrainOption& option : train_option_kinds())
    EXPECT_TRUE(kinds[name_of(option.kind)].insert(option.name).second) << option.name << " stands twice";
  return kinds;
}

TEST(TrainOptionKinds, AreThese) {
  const std::map<std::string, std::set<std::string>> expected = {
      {"network",
       {"aux", "classes", "dropout", "form", "graph", "image", "label-smoothing", "model", "precision",
        "soft-labels", "stochastic-depth"}},
      {"recipe", {"batch",          "beta1",        "beta2",       "clip-norm",    "crop",
                  "cutmix",         "decay-groups", "ema",         "epsilon",      "erase",
                  "evaluate-every", "flip",         "lr",          "lr-decay",     "lr-final",
                  "lr-milestones",  "lr-rise",      "lr-schedule", "microbatches", "mixup",
                  "momentum",       "nesterov",     "optimiser",   "seed",         "trivial-augment",
                  "warmup-epochs",  "warmup-steps", "weight-decay"}},
      {"data", {"data-dir", "dataset"}},
      {"last bits", {"cpu-isa", "device", "method", "plan", "replicas", "threads", "weight-gradients"}},
      {"extent", {"epochs", "init", "init-partial", "max-time", "on-nan", "patience", "resume", "steps"}},
      {"speed",
       {"at-most",   "augment",          "backward-split", "chunks",        "cluster",         "cuts",
        "in-flight", "link-bytes-per-s", "link-latency-s", "local",         "max-states",      "memory-bytes",
        "objective", "overlap-steps",    "profile",        "profile-cache", "profile-seconds", "schedule",
        "stages",    "transport",        "watchdog"}},
      {"output",
       {"checkpoint", "checkpoint-every", "config", "dry-run", "help", "json", "keep", "keep-best", "metrics",
        "quiet", "results", "trace"}}};
  EXPECT_EQ(by_kind(), expected);
}

TEST(TrainOptionKinds, WhatChangesNumbersIsInManifests) {
  std::set<std::string> facts;
  for (const TrainOption& option : train_option_kinds()) {
    const bool compared = option.kind == OptionKind::network || option.kind == OptionKind::recipe;
    if (compared && std::string(option.name) != "image") {
      EXPECT_NE(option.value, nullptr) << option.name;
    }
    if (option.value == nullptr) continue;
    EXPECT_TRUE(compared) << option.name;
    EXPECT_TRUE(facts.insert(option.fact).second) << option.fact;
    EXPECT_NE(option.value(TrainCommandOptions(), 10), "") << option.name;
  }
}

TEST(TrainOptionKinds, AnOptionWithoutOneIsFound) {
  TrainCommandOptions options;
  CLI::App app;
  CLI::App& command = add_command(app, "train", "", "");
  add_train_options(command, options);
  EXPECT_NO_THROW(check_train_option_kinds(command));
  bool forgotten = false;
  command.add_flag("--forgotten", forgotten);
  EXPECT_THROW(check_train_option_kinds(command), Error);
}

TEST(TrainOptionKinds, NesterovIsSaidEitherWayAndTheLastWordCounts) {
  const auto nesterov = [](const std::vector<std::string>& words) {
    TrainCommandOptions options;
    CLI::App app;
    add_train_options(add_command(app, "train", "", ""), options);
    std::vector<std::string> all = {"train", "--model", "resnet20"};
    all.insert(all.end(), words.begin(), words.end());
    parse_and_run(app, all);
    return options.optimiser.nesterov;
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
