#include "app/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <numeric>

#include "framework/error.h"
#include "framework/json.h"

namespace antichain {
namespace {

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

bool names_option(const std::string& word, const std::string& option) {
  return word == option || word.starts_with(option + "=");
}

// What the file says for this subcommand, as --name=value words; what the command line says itself is left out.
std::vector<std::string> settings(const std::string& file, const std::vector<std::string>& words) {
  std::istringstream text(read_file(file));
  std::vector<std::string> result;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's marks of a section's begin and end
    if (!item.parents.empty() && item.parents != std::vector<std::string>{words[0]}) continue;
    const std::string option = "--" + item.name;
    if (std::ranges::any_of(words, [&](const std::string& w) { return names_option(w, option); })) continue;
    if (item.inputs.size() != 1) throw Error(fmt::format("{}: '{}' must have one value", file, item.name));
    result.push_back(option + "=" + item.inputs[0]);
  }
  return result;
}

// Unknown words are reported with the nearest option of the subcommand.
[[noreturn]] void refuse_extras(const CLI::App& app, const CLI::ExtrasError& error) {
  const auto commands = app.get_subcommands();
  const CLI::App& command = commands.empty() ? app : *commands[0];
  std::vector<std::string> known, extras = app.remaining(true);
  if (commands.empty()) {
    for (const CLI::App* c : app.get_subcommands({})) known.push_back(c->get_name());
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  if (extras.empty()) throw Error(error.what(), "see --help", ExitCode::usage);
  const std::string word = extras[0].substr(0, extras[0].find('='));
  const std::string near = nearest(word, known);
  throw Error(fmt::format("there is no {} '{}'", word.starts_with("-") ? "option" : "command", word),
              near.empty() ? "see --help" : fmt::format("did you mean {}?", near), ExitCode::usage);
}

}  // namespace

CLI::App& add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& example) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.footer("Example:\n  " + example);
  command
      .add_option("--config", "read flags from this TOML file (name = value); flags given here override it")
      ->type_name("FILE")
      ->group("Output");
  return command;
}

std::vector<std::string> with_config(std::vector<std::string> words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (!names_option(words[i], "--config")) continue;
    const bool joined = words[i].starts_with("--config=");
    if (!joined && i + 1 == words.size()) break;  // the parser says what is missing
    const std::string file = joined ? words[i].substr(9) : words[i + 1];
    const std::vector<std::string> more = settings(file, words);
    words.insert(words.begin() + 1, more.begin(), more.end());
    break;
  }
  return words;
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 2) + 1;  // 2: swapped letters
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void parse_and_run(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> reversed = with_config(words);
  std::ranges::reverse(reversed);  // CLI11 takes the words last to first
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto commands = app.get_subcommands();
    std::cout << (commands.empty() ? app : *commands[0]).help();
  } catch (const CLI::CallForVersion& version) {
    std::cout << version.what() << "\n";
  } catch (const CLI::ExtrasError& error) {
    refuse_extras(app, error);
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), "see --help", ExitCode::usage);
  }
}

}  // namespace antichain
