#include "app/cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "app/cli/command_parser.h"
#include "app/cli/help.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/overwriting.h"
#include "app/cli/settings_words.h"
#include "framework/error.h"
#include "framework/known_names.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

// A NamedCommand is the command that the first words name, and how many they are: "data", "pack".
struct NamedCommand {
  const CLI::App* app;
  size_t words = 0;
};
NamedCommand named_command(const CLI::App& app, const std::vector<std::string>& words) {
  NamedCommand named{&app};
  for (; named.words < words.size(); ++named.words) {
    const CLI::App* const next = find_command(*named.app, words[named.words]);
    if (next == nullptr) break;
    named.app = next;
  }
  return named;
}

// Recognises "--batch", and also options that no settings file may give: --help, --config.
bool is_option(const CLI::App& command, const std::string& word) {
  return word.starts_with("--") && command.get_option_no_throw(word) != nullptr;
}
bool takes_value(const CLI::App& command, const std::string& word) {
  return is_option(command, word) && command.get_option_no_throw(word)->get_items_expected_max() > 0;
}

[[noreturn]] void refuse_empty(const std::string& what) {
  throw Error(what, "is a variable of your script not set?", ExitCode::usage);
}

void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  const NamedCommand named = named_command(app, words);
  std::vector<std::string> names = command_names(*named.app);
  if (names.empty()) return;
  if (named.words == 0) names.insert(names.end(), {"help", "version"});
  if (words.size() == named.words) {
    throw Error("a command is missing", fmt::format("give one of {}", fmt::join(names, ", ")),
                ExitCode::usage);
  }
  if (!words[named.words].starts_with("-")) refuse_name("command", words[named.words], names);
}

// Returns the parsed command, down to its last word.
const CLI::App& parsed_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : parsed_command(*commands[0]);
}

std::string hint(const CLI::App& app) { return fmt::format("see {} --help", words_of(parsed_command(app))); }

// Returns the nearest of the names, as "--name". It compares letters first, then names that other programs
// use, then the longest that the word begins with, as --batch-size and --batchsize begin with --batch.
std::string nearest_option(const std::string& word, const std::vector<std::string>& known) {
  static const std::map<std::string, std::string> elsewhere = {
      {"--learning-rate", "lr"}, {"--wd", "weight-decay"},   {"--arch", "model"},
      {"--network", "model"},    {"--data", "data-dir"},     {"--data-path", "data-dir"},
      {"--output", "out"},       {"--num-epochs", "epochs"}, {"--np", "local"},
      {"--gpu", "device"},       {"--nproc", "local"},       {"--load", "init"}};
  const auto among = [&](const std::string& name) { return std::ranges::find(known, name) != known.end(); };
  if (const auto other = elsewhere.find(word); other != elsewhere.end() && among(other->second))
    return "--" + other->second;
  const std::string bare = word.substr(std::min<size_t>(2, word.size()));
  std::string best = nearest(bare, known);
  if (best.empty())
    for (const std::string& name : known)
      if (bare.starts_with(name) && name.size() > best.size()) best = name;
  return best.empty() ? "" : "--" + best;
}

// Unknown words are reported with the nearest option of the subcommand.
[[noreturn]] void refuse_extras(const CLI::App& app) {
  const CLI::App& command = parsed_command(app);
  const std::string extra = app.remaining(true).at(0), word = extra.substr(0, extra.find('='));
  if (!word.starts_with("-")) {
    throw Error(fmt::format("{} has no use for the word '{}'", words_of(command), word), hint(app),
                ExitCode::usage);
  }
  const std::string near = nearest_option(word, option_names(command));
  throw Error(fmt::format("there is no option '{}'", word),
              near.empty() ? hint(app) : fmt::format("did you mean {}?", near), ExitCode::usage);
}

void print_once(const std::string& text) {
  begin_answer();
  if (rank_hint() == 0) fmt::print("{}", text);  // one of several processes prints
}

constexpr const char* help_all = "--help-all";

// Turns "help plan" into "plan --help", and "version" into "--version".
std::vector<std::string> with_flags_for_words(std::vector<std::string> words) {
  if (words == std::vector<std::string>{"version"}) return {"--version"};
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

// CLI11 would take the next word as the value of "--json=", and any word as that of "--json".
void check_values(const CLI::App& command, std::span<const std::string> words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string option = words[i].substr(0, equals);
    if (words[i].empty()) refuse_empty("there is an empty word in the command line");
    if (!option.starts_with("--")) continue;
    if (equals + 1 == words[i].size()) refuse_empty(option + " has an empty value");
    if (equals != std::string::npos && is_option(command, option) && !takes_value(command, option))
      if (const std::string value = words[i].substr(equals + 1); value != "true" && value != "false")
        throw Error(fmt::format("{} takes no value but true or false, not '{}'", option, value),
                    fmt::format("write {}, or leave it out", option), ExitCode::usage);
    if (equals != std::string::npos || i + 1 == words.size() || !takes_value(command, option)) continue;
    const std::string& value = words[++i];
    if (value.empty()) refuse_empty(option + " has an empty value");
    if (const std::string next = value.substr(0, value.find('=')); is_option(command, next))
      throw Error(fmt::format("{} takes one value, but the option {} follows", option, next),
                  fmt::format("write {0}=VALUE, or leave {0} out", option), ExitCode::usage);
  }
}

// A later word overrides an earlier one, and the settings file's words come first. So scripts append what
// they change. The values of a list add up.
void let_last_win(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::Join)
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  for (CLI::App* command : app.get_subcommands(nullptr)) let_last_win(*command);
}

// CLI11 says "--batch: 1 required INT missing".
std::string one_value(const std::string& sentence) {
  return sentence.substr(0, sentence.find(':')) + " takes one value";
}

// CLI11 says "--model is required". An option that excludes a required one may stand in its place.
std::string missing_options(const CLI::App& command, const std::string& sentence) {
  const std::string name = sentence.substr(0, sentence.find(' '));
  const CLI::Option* option = command.get_option_no_throw(name);
  if (!option) return sentence;
  std::string names = name;
  for (const CLI::Option* other : command.get_options())  // in the order of the help
    if (option->get_excludes().contains(const_cast<CLI::Option*>(other))) names += " or " + other->get_name();
  return names + sentence.substr(name.size());
}

// These are of the command that was parsed last.
bool dry_run = false, quiet_given = false;
std::string config_file;  // read before: with_config()

}  // namespace

void add_dry_run_option(CLI::App& command) {
  using enum OptionKind;
  add_option(command, "Output", "--dry-run", dry_run, {},
             "check the options as far as that takes no device, no other rank and no data, and end",
             {output});
}

void end_dry_run() {
  if (dry_run) throw CLI::Success();
}

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& example) {
  using enum OptionKind;
  CLI::App& command = *app.add_subcommand(std::make_shared<CommandParser>(description, name));
  command.formatter(app.get_formatter());
  command.footer("Example\n  " + example);
  command.set_help_all_flag(help_all);
  const OptionGroup add(command, "Output");
  add("--config FILE", config_file, {},
      "read flags from this TOML file (name = value); flags given here override it", {output});
  add("--quiet", quiet_given, {}, "print warnings, errors and what was asked for, and nothing else",
      {output});
  command.parse_complete_callback([&command] {
    if (quiet_given) be_quiet();
    check_nothing_is_overwritten(command);
  });
  return command;
}

std::vector<std::string> with_config(const CLI::App& app, std::vector<std::string> words) {
  const NamedCommand command = named_command(app, words);
  std::string file;
  for (size_t i = command.words; i < words.size(); ++i) {
    if (words[i].starts_with("--config=")) file = words[i].substr(std::string_view("--config=").size());
    if (words[i] == "--config" && i + 1 < words.size())
      file = words[++i];  // without a next word the parser says what is missing
  }
  if (file.empty()) return words;
  const auto flags = words.begin() + std::ptrdiff_t(command.words);
  const std::vector<std::string> more = settings_words(app, {words.begin(), flags}, file);
  words.insert(flags, more.begin(), more.end());
  return words;
}

void parse_and_run(CLI::App& app, const std::vector<std::string>& given) {
  const std::vector<std::string> words = with_flags_for_words(given);
  check_command(app, words);
  let_last_win(app);
  const NamedCommand command = named_command(app, words);
  check_values(*command.app, std::span(words).subspan(command.words));
  std::vector<std::string> reversed = with_config(app, words);
  std::ranges::reverse(reversed);  // CLI11 takes the words last to first
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print_once(parsed_command(app).help());
  } catch (const CLI::CallForAllHelp&) {
    print_once(parsed_command(app).help("", CLI::AppFormatMode::All));
  } catch (const CLI::CallForVersion& version) {
    print_once(version.what() + std::string("\n"));
  } catch (const CLI::Success&) {
    print_once(fmt::format("{}: nothing is wrong with the options, and nothing was run\n",
                           words_of(parsed_command(app))));
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app);
  } catch (const CLI::ArgumentMismatch& error) {
    throw Error(one_value(error.what()), hint(app), ExitCode::usage);
  } catch (const CLI::RequiredError& error) {
    throw Error(missing_options(*command.app, error.what()), hint(app), ExitCode::usage);
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), hint(app), ExitCode::usage);
  }
}

}  // namespace antichain
