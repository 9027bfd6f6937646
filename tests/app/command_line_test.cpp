#include "app/command_line.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "app/commands.h"
#include "framework/error.h"
#include "framework/json.h"
#include "tests/data/expect_error.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

using Words = std::vector<std::string>;

// A command line with one command that records what it was given.
struct Given {
  int batch = 1;
  bool plain = false;
  std::string name = "-";
};
Given parse(const Words& words) {
  Given given;
  CLI::App app("a test", "test");
  CLI::App& command = add_command(app, "train", "trains", "test train");
  command.add_option("--batch", given.batch);
  command.add_option("--name", given.name);
  command.add_flag("--plain", given.plain);
  app.require_subcommand(1);
  parse_and_run(app, words);
  return given;
}

TEST(CommandLine, SuggestsTheNearestOption) {
  expect_error([] { parse({"train", "--bacth", "3"}); }, {"no option '--bacth'", "did you mean --batch?"});
  expect_error([] { parse({"train", "--bacth=3"}); }, {"no option '--bacth'", "did you mean --batch?"});
  expect_error([] { parse({"train", "--zzzzzzzz"}); }, {"no option '--zzzzzzzz'", "--help"});
  expect_error([] { parse({"train", "--batch", "many"}); }, {"many", "--help"});
  expect_error([] { parse({}); }, {"--help"});
}

TEST(CommandLine, NearestIsNearOrNothing) {
  EXPECT_EQ(nearest("--modle", {"--mode", "--model", "--batch"}), "--mode");
  EXPECT_EQ(nearest("trian", {"train", "plan"}), "train");
  EXPECT_EQ(nearest("frobnicate", {"train", "plan"}), "");
}

TEST(CommandLine, SettingsComeFromAFileAndFlagsOverrideThem) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "settings.toml").string();
  write_file(file, "batch = 64\nplain = true\nname = \"two words\"\n[plan]\nbatch = 7\n");
  const Given given = parse({"train", "--config", file});
  EXPECT_EQ(given.batch, 64);
  EXPECT_TRUE(given.plain);
  EXPECT_EQ(given.name, "two words");
  EXPECT_EQ(parse({"train", "--config=" + file, "--batch=8"}).batch, 8);
  write_file(file, "[train]\nbatch = 9\n");
  EXPECT_EQ(parse({"train", "--config", file}).batch, 9);
  write_file(file, "bacth = 9\n");
  expect_error([&] { parse({"train", "--config", file}); }, {"'--bacth'", "--batch"});
  expect_error([] { parse({"train", "--config", "/nowhere.toml"}); }, {"/nowhere.toml"});
}

// Mistakes that need neither a device nor data.
TEST(Commands, RefuseWhatTheyCantUse) {
  const auto run = [](const Words& words) {
    CLI::App app("a test", "antichain");
    app.require_subcommand(1);
    for (const auto add : {add_info, add_profile, add_plan, add_simulate, add_train}) add(app);
    parse_and_run(app, words);
  };
  expect_error([&] { run({"train", "--dataset", "imagenet"}); }, {"imagenet", "cifar10"});
  expect_error([&] { run({"train", "--lr-schedule", "up"}); }, {"'up'", "one-cycle"});
  expect_error(
      [&] {
        run({"train", "--batch", "10", "--microbatches", "4"});
      },
      {"batch of 10", "4 micro-batches"});
  expect_error([&] { run({"simulate", "--stages", "2"}); }, {"--profile"});
  expect_error([&] { run({"plan", "--profile", "/nowhere.json", "--stages", "2"}); }, {"/nowhere.json"});
  expect_error([&] { run({"trian"}); }, {"'trian'", "train"});
}

}  // namespace
}  // namespace antichain
