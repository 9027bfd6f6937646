#include "app/command_line.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "app/checks.h"
#include "app/commands.h"
#include "framework/error.h"
#include "framework/json.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

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
  expect_error([] { parse({"train", "--batch"}); }, {"--batch takes one value"});
  expect_error([] { parse({"train", "more"}); }, {"'more'"});
  expect_error([] { parse({}); }, {"command is missing", "train"});
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
  expect_error([&] { parse({"train", "--config", file}); }, {file, "'bacth'", "'batch'"});
  write_file(file, std::string("\x06\x01\x02 = \xff"));
  expect_error([&] { parse({"train", "--config", file}); }, {file, "no settings file"});
  write_file(file, "batch = [1, 2]\n");
  expect_error([&] { parse({"train", "--config", file}); }, {file, "one value"});
  expect_error([] { parse({"train", "--config", "/nowhere.toml"}); }, {"/nowhere.toml"});
}

TEST(Checks, NumbersOutsideAreRefusedWithTheirOption) {
  const auto given = [](const std::string& word) {
    CLI::App app("a test", "test");
    CLI::App& command = add_command(app, "train", "trains", "test train");
    int batch = 1;
    double rate = 1;
    check_whole(command.add_option("--batch", batch), 1, 2000);
    check_number(command.add_option("--lr", rate), 0, 10);
    parse_and_run(app, {"train", word});
  };
  for (const char* good : {"--batch=1", "--batch=2000", "--lr=0", "--lr=1e1", "--lr=.5"})
    EXPECT_NO_THROW(given(good));
  for (const char* bad : {"0", "2001", "-1", "1.5", "1e2", "99999999999999999999", "3x", "nan"})
    expect_error([&] { given(std::string("--batch=") + bad); },
                 {"--batch takes a whole number from 1 to 2,000", std::string("'") + bad + "'"});
  for (const char* bad : {"-0.1", "11", "nan", "inf", "-inf", "x", "1 2"})
    expect_error([&] { given(std::string("--lr=") + bad); }, {"--lr takes a number from 0 to 10"});
}

TEST(Checks, WritableIsFoundOutBeforeWriting) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(check_writable({"", folder.str() + "/new.json", "new.json"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left of the attempt";
  expect_error([&] { check_writable({"", folder.str() + "/no/x"}); }, {"there is no folder", "/no"});
  check_writable({"/dev/null", "-", "/dev/stdout"});  // written to as they are, not replaced
  expect_error([&] { check_writable({folder.str()}); }, {"it is a folder"});
  expect_error([&] { check_writable({"/proc/x.json"}); }, {"/proc/x.json", "takes no files"});
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
  expect_error([&] { run({"profile", "--precision", "bf61"}); }, {"'bf61'", "float32", "bf16"});
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
