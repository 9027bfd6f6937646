// Tests reading options from flags, variables and a settings file, and what is refused in them.
#include "app/cli/command_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/option_row.h"
#include "app/job/preflight.h"
#include "framework/json.h"
#include "framework/known_names.h"
#include "layers/cpu/backend.h"
#include "models/model.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

using Words = std::vector<std::string>;

// Given is a command line with one command that records what it was given.
struct Given {
  int batch = 1;
  bool plain = false;
  std::string name = "-", settings;  // as ranks compare them
};
Given parse(const Words& words) {
  Given given;
  CLI::App app("a test", "test");
  CLI::App& command = add_command(app, "train", "trains", "test train");
  const OptionGroup add(command, "Options");
  add("--batch N", given.batch, whole_between(1, 2000), "");
  add("--name NAME", given.name, {}, "");
  add("--plain", given.plain, {}, "");
  int stages = 1;
  add_option(add_command(app, "plan", "plans", "test plan"), "Options", "--stages N", stages, {}, "");
  command.callback([&] { given.settings = settings_of(command); });
  app.require_subcommand(1);
  parse_and_run(app, words);
  return given;
}

TEST(CommandLine, SuggestsTheNearestOption) {
  expect_error([] { parse({"train", "--bacth", "3"}); }, {"no option '--bacth'", "did you mean --batch?"});
  expect_error([] { parse({"train", "--bacth=3"}); }, {"no option '--bacth'", "did you mean --batch?"});
  expect_error([] { parse({"train", "--zzzzzzzz"}); }, {"no option '--zzzzzzzz'", "--help"});
  expect_error([] { parse({"train", "--batch", "many"}); }, {"--batch takes", "many"});
  expect_error([] { parse({"train", "--batch"}); }, {"--batch takes one value"});
  expect_error([] { parse({"train", "more"}); }, {"'more'"});
  expect_error([] { parse({}); }, {"command is missing", "train"});
}

// The variable is the reader's only hint where the option was not given.
TEST(CommandLine, NamesTheVariableThatAValueIsOf) {
  const auto parse_seconds = [](const Words& words) {
    double seconds = 0;
    CLI::App app("a test", "test");
    add_option(app, "Options", "--seconds X", seconds, number_between(1, 9), "")
        ->envname("ANTICHAIN_TEST_SECONDS");
    parse_and_run(app, words);
    return seconds;
  };
  setenv("ANTICHAIN_TEST_SECONDS", "4", 1);
  EXPECT_EQ(parse_seconds({}), 4);
  EXPECT_EQ(parse_seconds({"--seconds", "3"}), 3);
  setenv("ANTICHAIN_TEST_SECONDS", "10", 1);
  expect_error([&] { parse_seconds({}); },
               {"--seconds ($ANTICHAIN_TEST_SECONDS) takes", "from 1 to 9", "10"});
  expect_error([&] { parse_seconds({"--seconds", "11"}); }, {"--seconds takes", "11"});
  unsetenv("ANTICHAIN_TEST_SECONDS");
}

TEST(CommandLine, NearestIsNearOrNothing) {
  EXPECT_EQ(nearest("--modle", {"--mode", "--model", "--batch"}), "--mode");
  EXPECT_EQ(nearest("trian", {"train", "plan"}), "train");
  EXPECT_EQ(nearest("frobnicate", {"train", "plan"}), "");
}

TEST(CommandLine, SettingsComeFromAFileAndFlagsOverrideThem) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "settings.toml").string();
  write_file(file, "batch = 64\nplain = true\nname = \"two words\"\n[plan]\nstages = 7\n");
  const Given given = parse({"train", "--config", file});
  EXPECT_EQ(given.batch, 64);
  EXPECT_TRUE(given.plain);
  EXPECT_EQ(given.name, "two words");
  EXPECT_EQ(parse({"train", "--config=" + file, "--batch=8"}).batch, 8);
  write_file(file, "[train]\nbatch = 9\n");
  EXPECT_EQ(parse({"train", "--config", file}).batch, 9);
  write_file(file, "bacth = 9\n");
  expect_error([&] { parse({"train", "--config", file}); }, {file, "'bacth'", "'batch'"});
  write_file(file, "batch = 9\n[train]\nbatch = 10\n");
  EXPECT_EQ(parse({"train", "--config", file}).batch, 10) << "a section is more special";
  write_file(file, "batch = [1, 2]\n");
  expect_error([&] { parse({"train", "--config", file}); }, {file, "one value"});
  expect_error([] { parse({"train", "--config", "/nowhere.toml"}); }, {"/nowhere.toml"});
}

// Each is refused, with the line and what is wrong there; nothing is passed over.
TEST(CommandLine, WhatIsNoSettingIsRefusedWithItsLine) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "settings.toml").string();
  struct Case {
    std::string text;
    int line;  // 0: not known
    std::string why;
  };
  for (const auto& [text, line, why] : std::vector<Case>{
           {"batch: 1\n", 1, "no settings file"},
           {"\nbatch =\nname = \"x\"\n", 2, "no settings file"},
           {"name = x\n", 1, "no settings file"},
           {"name = \"x\n", 1, "no settings file"},
           {std::string("\x06\x01\x02 = \xff"), 1, "no settings file"},
           {"batch = 1\nbatch = 2\n", 2, "no settings file"},
           {"\n[tain]\nbatch = 1\n", 2, "[tain] names no command: did you mean 'train'?"},
           {"[tain]\n", 1, "[tain] names no command"},
           {"[Train]\nbatch = 1\n", 1, "[Train] names no command"},
           {"[test.train]\nbatch = 1\n", 1, "[test.train] names no command"},
           {"[train.sub]\nbatch = 1\n", 1, "[train.sub] names no command"},
           {"größe = 1\n", 1, "not ASCII"},
           {"name = \"\"\"a\nb\"\"\"\n", 1, "several lines"},
           {"[[[train]]", 0, "no settings file"},
           {"[[train]]\nbatch = 1\n", 1, "'train' must have one value"},
           {"[plan]\nbatch = 1\n", 2, "plan has no option 'batch'"},
           {"\n\nbacth = 1\n", 3, "train has no option 'bacth': did you mean 'batch'?"},
           {"help = true\n", 1, "train has no option 'help'"},
           {"config = \"more.toml\"\n", 1, "no option 'config'"},
           {"name = \"\"\n", 1, "'name' has an empty value"},
           {"name = 7\n", 1, "'name' takes a text in quotes"},
           {"name = true\n", 1, "'name' takes a value, not true"},
           {"plain = \"true\"\n", 1, "'plain' takes true or false"},
           {"plain = 1\n", 1, "'plain' takes true or false"},
           {"\nbatch = 0.5\n", 2, "--batch takes a whole number"},
           {"batch = 2001\n", 1, "--batch takes a whole number"},
           {"batch = nan\n", 1, "--batch takes a whole number"},
           {"batch = 2026-11-22\n", 1, "'batch' must have one value"},
           {"batch = {}\n", 1, "[batch] names no command"},
           {"batch = [\n  1, 2]\n", 1, "a list where one value belongs"},
           {"train = {name = \"ü\"}\n", 1, "in an inline table"},
           {"batch = 9=\"\\ﺻ\"\n", 1, "a second '='"},
       }) {
    write_file(file, text);
    expect_error(
        [&] {
          parse({"train", "--config", file});
        },
        {line > 0 ? fmt::format("{}:{}: ", file, line) : file, why});
  }
}

TEST(CommandLine, SettingsAreTextsOfToml) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "settings.toml").string();
  for (const auto& [text, name] :
       {std::pair("name = \"run#1\"  # a comment\n", "run#1"), std::pair("name = 'a=b \"c\"'\n", "a=b \"c\""),
        std::pair("name = \"ü\\\"#\" # größer\n", "ü\"#"),
        std::pair("[ train ]\nname = \"[1,2]\"\n", "[1,2]"), std::pair("train.name = \"\\u00e9\"\n", "é"),
        std::pair("train = {name = \"--plain\"}\n", "--plain")}) {
    write_file(file, text);
    EXPECT_EQ(parse({"train", "--config", file}).name, name) << text;
  }
  write_file(file, "batch = 1_000\nplain = false\n");
  EXPECT_EQ(parse({"train", "--config", file}).batch, 1000);
  EXPECT_FALSE(parse({"train", "--config", file}).plain);
  EXPECT_EQ(parse({"train", "--config", "/gone.toml", "--config", file}).batch, 1000)
      << "the last one counts";
}

TEST(CommandLine, TheLastOfTwoValuesCounts) {
  const Given given = parse({"train", "--batch", "3", "--batch=4"});
  EXPECT_EQ(given.batch, 4);
  EXPECT_EQ(given.settings, "batch 4\n");
  EXPECT_TRUE(parse({"train", "--plain", "--plain"}).plain);
}

TEST(CommandLine, EmptyValuesAreRefused) {
  for (const Words& words :
       {Words{"train", "--name", ""}, Words{"train", "--name="}, Words{"train", "--name", "", "--plain"},
        Words{"train", "--name=", "--plain"}, Words{"train", "--config", ""}})
    expect_error([&] { parse(words); }, {words[1].substr(0, words[1].find('=')), "empty value", "variable"});
  expect_error([] { parse({"train", ""}); }, {"empty word", "variable"});
}

TEST(CommandLine, NoOptionIsTakenForAValue) {
  expect_error([] { parse({"train", "--name", "--plain"}); }, {"--name takes one value", "--plain follows"});
  expect_error(
      [] {
        parse({"train", "--name", "--batch=3"});
      },
      {"--name takes one value", "--batch follows"});
  expect_error([] { parse({"train", "--config", "--plain"}); }, {"--config takes one value"});
  EXPECT_EQ(parse({"train", "--name=--plain"}).name, "--plain");
  EXPECT_EQ(parse({"train", "--name", "-"}).name, "-");
}

TEST(CommandLine, SuggestsWhatOtherProgramsCallOtherwise) {
  for (const char* other : {"--batch-size", "--batchsize", "--batch_size"})
    expect_error([&] { parse({"train", other, "3"}); }, {"did you mean --batch?"});
  const TemporaryFolder folder;
  const auto dataset = [](const std::string& name) {
    CLI::App app("a test", "antichain");
    app.require_subcommand(1);
    add_train(app);
    parse_and_run(app, {"train", "--dataset", name});
  };
  expect_error([&] { dataset(folder.str()); }, {"data pack --images " + folder.str()});
  write_file(folder.str() + "/set.h5", "");
  expect_error([&] { dataset(folder.str() + "/set.h5"); }, {"--dataset hdf5:" + folder.str() + "/set.h5"});
}

TEST(Checks, UnitsArePlainNumbersToTheOption) {
  int64_t memory = 0;
  double rate = 0, latency = 0;
  const auto given = [&](const std::string& word) {
    CLI::App app("a test", "test");
    CLI::App& command = add_command(app, "plan", "plans", "test plan");
    const OptionGroup add(command, "Options");
    add("--memory-bytes SIZE", memory, size_up_to(int64_t(1) << 50), "");
    add("--link SIZE", rate, rate_up_to(1e15), "");
    add("--latency TIME", latency, time_between(0, 10), "");
    parse_and_run(app, {"plan", word});
  };
  given("--memory-bytes=64GiB");
  EXPECT_EQ(memory, int64_t(64) << 30);
  given("--memory-bytes=1024T");
  EXPECT_EQ(memory, int64_t(1) << 50);
  given("--memory-bytes=123456789");
  EXPECT_EQ(memory, 123456789);
  given("--link=12GB/s");
  EXPECT_EQ(rate, 12e9);
  given("--link=1e9");
  EXPECT_EQ(rate, 1e9);
  given("--latency=20us");
  EXPECT_DOUBLE_EQ(latency, 20e-6);
  for (const char* bad :
       {"--memory-bytes=-1", "--memory-bytes=1.5", "--memory-bytes=1025T", "--memory-bytes=64Gb/s"})
    expect_error([&] { given(bad); }, {"--memory-bytes takes a size up to 1 PiB"});
  expect_error([&] { given("--link=fast"); }, {"--link takes bytes a second", "'fast'"});
  expect_error([&] { given("--latency=11"); }, {"--latency takes a time from 0 to 10 seconds"});
}

TEST(Checks, NumbersOutsideAreRefusedWithTheirOption) {
  const auto given = [](const std::string& word) {
    CLI::App app("a test", "test");
    CLI::App& command = add_command(app, "train", "trains", "test train");
    int batch = 1;
    double rate = 1;
    const OptionGroup add(command, "Options");
    add("--batch N", batch, whole_between(1, 2000), "");
    add("--lr X", rate, number_between(0, 10), "");
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

// A network from a file travels with the options, and is none that a name stands for.
TEST(Commands, AGivenGraphIsNoKnownModel) {
  register_cpu_backend();
  const Words known = model_names();
  CLI::App app("a test", "antichain");
  add_info(app);
  const std::string graph = ANTICHAIN_SOURCE_DIR "/tests/golden/small.antichain";
  parse_and_run(app, {"info", "--graph", graph, "--json", "/dev/null"});
  EXPECT_EQ(model_names(), known);
}

// These mistakes need neither a device nor data.
TEST(Commands, RefuseWhatTheyCantUse) {
  const auto run = [](const Words& words) {
    CLI::App app("a test", "antichain");
    app.require_subcommand(1);
    for (const auto add : {add_info, add_profile, add_plan, add_simulate, add_train}) add(app);
    parse_and_run(app, words);
  };
  expect_error([&] { run({"train", "--dataset", "imagenet"}); }, {"imagenet", "cifar10"});
  expect_error([&] { run({"train", "--lr-schedule", "up"}); }, {"'up'", "one-cycle"});
  const auto with_schedule = [&](const std::string& name, const std::string& option,
                                 const std::string& value) {
    run({"train", "--lr-schedule", name, option, value});
  };
  struct Case {
    const char *option, *value, *owner, *other;
  };
  for (const Case& c :
       {Case{"--lr-milestones", "0.2,0.8", "step", "cosine"}, Case{"--lr-decay", "0.5", "step", "constant"},
        Case{"--lr-final", "0.001", "cosine", "one-cycle"}, Case{"--lr-rise", "0.2", "one-cycle", "step"}})
    expect_error([&] { with_schedule(c.other, c.option, c.value); },
                 {c.option, c.owner, "leave it out", c.other});
  expect_error([&] { with_schedule("step", "--lr-milestones", "0.5,"); }, {"--lr-milestones", "'0.5,'"});
  expect_error([&] { with_schedule("step", "--lr-milestones", "0.7,0.2"); }, {"0.7, 0.2", "rising order"});
  expect_error([&] { with_schedule("step", "--lr-milestones", "30,60"); }, {"30, 60", "from 0 to 1"});
  expect_error([&] { with_schedule("cosine", "--lr-final", "100"); }, {"to 100", "from 0 to the peak"});
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
