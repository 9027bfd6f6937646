#include "app/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>

#include "app/checks.h"
#include "app/overwriting.h"
#include "framework/error.h"
#include "framework/json.h"
#include "pipeline/launch.h"

namespace antichain {
namespace {

// The command that the first words name, and how many they are: "data", "pack".
struct NamedCommand {
  const CLI::App* app;
  size_t words = 0;
};
NamedCommand named_command(const CLI::App& app, const std::vector<std::string>& words) {
  NamedCommand named{&app};
  for (; named.words < words.size(); ++named.words) {
    const std::vector<const CLI::App*> commands = named.app->get_subcommands(nullptr);
    const auto next = std::ranges::find(commands, words[named.words],
                                        [](const CLI::App* command) { return command->get_name(); });
    if (next == commands.end()) break;
    named.app = *next;
  }
  return named;
}

bool names_option(const std::string& word, const std::string& option) {
  return word == option || word.starts_with(option + "=");
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

void check_setting(const CLI::ConfigItem& item, const std::string& file, const CLI::App& command) {
  const bool plain =
      std::ranges::all_of(item.name, [](unsigned char c) { return std::isalnum(c) || c == '-'; });
  if (!plain)
    throw Error(file + " is no settings file", "write lines of the form name = value", ExitCode::usage);
  const std::vector<std::string> known = option_names(command);
  if (std::ranges::find(known, item.name) == known.end()) {
    const std::string near = nearest(item.name, known);
    throw Error(fmt::format("{}: {} has no option '{}'", file, command.get_name(), item.name),
                near.empty() ? "" : fmt::format("did you mean '{}'?", near), ExitCode::usage);
  }
  if (item.inputs.size() != 1)
    throw Error(fmt::format("{}: '{}' must have one value", file, item.name), "", ExitCode::usage);
}

// What the file says for this subcommand, as --name=value words; what the command line says itself is left out.
std::vector<std::string> settings(const std::string& file, const NamedCommand& command,
                                  const std::vector<std::string>& words) {
  const std::vector<std::string> path(words.begin(), words.begin() + std::ptrdiff_t(command.words));
  std::istringstream text(read_file(file));
  std::vector<std::string> result;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks of a section's begin and end
    if (!item.parents.empty() && item.parents != path) continue;
    check_setting(item, file, *command.app);
    const std::string option = "--" + item.name;
    if (std::ranges::any_of(words, [&](const std::string& w) { return names_option(w, option); })) continue;
    result.push_back(option + "=" + item.inputs[0]);
  }
  return result;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
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

// The command that was parsed, down to its last word.
const CLI::App& parsed_command(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : parsed_command(*commands[0]);
}

std::string path_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? "antichain"
                                         : path_of(*command.get_parent()) + " " + command.get_name();
}

std::string hint(const CLI::App& app) { return fmt::format("see {} --help", path_of(parsed_command(app))); }

// Unknown words are reported with the nearest option of the subcommand.
[[noreturn]] void refuse_extras(const CLI::App& app) {
  const CLI::App& command = parsed_command(app);
  const std::string extra = app.remaining(true).at(0), word = extra.substr(0, extra.find('='));
  if (!word.starts_with("-")) {
    throw Error(fmt::format("{} has no use for the word '{}'", path_of(command), word), hint(app),
                ExitCode::usage);
  }
  std::vector<std::string> known = option_names(command);
  for (std::string& name : known) name = "--" + name;
  const std::string near = nearest(word, known);
  throw Error(fmt::format("there is no option '{}'", word),
              near.empty() ? hint(app) : fmt::format("did you mean {}?", near), ExitCode::usage);
}

void print_once(const std::string& text) {
  if (rank_hint() == 0) fmt::print("{}", text);  // of several processes, one speaks
}

// "help plan" is "plan --help", and "version" is "--version".
std::vector<std::string> with_flags_for_words(std::vector<std::string> words) {
  if (words == std::vector<std::string>{"version"}) return {"--version"};
  if (words.empty() || words[0] != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

// CLI11 says "--batch: 1 required INT missing".
std::string one_value(const std::string& sentence) {
  return sentence.substr(0, sentence.find(':')) + " takes one value";
}

}  // namespace

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& example) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.footer("Example\n  " + example);
  command
      .add_option("--config", "read flags from this TOML file (name = value); flags given here override it")
      ->type_name("FILE")
      ->group("Output");
  command.parse_complete_callback([&command] { check_nothing_is_overwritten(command); });
  return command;
}

std::vector<std::string> with_config(const CLI::App& app, std::vector<std::string> words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (!names_option(words[i], "--config")) continue;
    const bool joined = words[i].starts_with("--config=");
    if (!joined && i + 1 == words.size()) break;  // the parser says what is missing
    const std::string file = joined ? words[i].substr(9) : words[i + 1];
    const NamedCommand command = named_command(app, words);
    const std::vector<std::string> more = settings(file, command, words);
    words.insert(words.begin() + std::ptrdiff_t(command.words), more.begin(), more.end());
    break;
  }
  return words;
}

void parse_and_run(CLI::App& app, const std::vector<std::string>& given) {
  const std::vector<std::string> words = with_flags_for_words(given);
  check_command(app, words);
  std::vector<std::string> reversed = with_config(app, words);
  std::ranges::reverse(reversed);  // CLI11 takes the words last to first
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print_once(parsed_command(app).help());
  } catch (const CLI::CallForVersion& version) {
    print_once(version.what() + std::string("\n"));
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app);
  } catch (const CLI::ArgumentMismatch& error) {
    throw Error(one_value(error.what()), hint(app), ExitCode::usage);
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), hint(app), ExitCode::usage);
  }
}

}  // namespace antichain
