#include "app/cli/help.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>

#include "app/cli/command_parser.h"
#include "app/cli/table.h"

namespace antichain {
namespace {

constexpr size_t text_width = 80, option_width = 26;

const CLI::App& root_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app : root_of(*app.get_parent());
}

// Texts say "antichain plan", whatever the program is called.
std::string by_own_name(const CLI::App& app, std::string text) {
  const CLI::App& root = root_of(app);
  const std::string ours = "antichain ";
  for (const CLI::App* command : root.get_subcommands({}))
    for (size_t at = 0; (at = text.find(ours + command->get_name(), at)) != std::string::npos; ++at)
      text.replace(at, ours.size(), root.get_name() + " ");
  return text;
}

OptionHelp option_help(const CLI::App& command, const CLI::Option& option, const OptionRow& row) {
  OptionHelp help{.names = {option.get_single_name()},
                  .group = option.get_group(),
                  .text = by_own_name(command, option.get_description()),
                  .values = row.accepts.names,
                  .matters = row.matters};
  if (!option.get_lnames().empty()) {
    help.names.clear();
    for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
    if (option.get_items_expected_max() > 0) help.value = option.get_type_name();
  }
  if (option.get_required()) help.text += " [required]";
  if (!option.get_default_str().empty()) help.text += fmt::format(" [{}]", option.get_default_str());
  return help;
}

std::vector<OptionHelp> options_of(const CLI::App& app) {
  const auto* command = dynamic_cast<const CommandParser*>(&app);
  std::vector<OptionHelp> options;
  std::vector<std::string> groups;
  for (const OptionRow& row : command ? command->rows : std::vector<OptionRow>()) {
    options.push_back(option_help(app, *app.get_option(row.option_name()), row));
    const std::string& group = options.back().group;
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  if (const auto output = std::ranges::find(groups, "Output"); output != groups.end())
    std::rotate(output, output + 1, groups.end());  // --config is in it, and is declared first
  std::ranges::stable_sort(options, {}, [&](const OptionHelp& option) {
    return std::ranges::find(groups, option.group) - groups.begin();
  });
  return options;
}

std::string entry(const std::string& head, const std::string& text) {
  return hanging("  " + head, option_width, text, text_width);
}

std::string text_of_commands(const CommandHelp& program, bool is_root) {
  std::string text = "\nCommands\n";
  for (const CommandHelp& command : program.commands)
    text += entry(command.words.substr(program.words.size() + 1), command.description);
  if (is_root)
    text += entry("help", "list the options of a command: " + program.words + " help train") +
            entry("version", "print the version");
  return text + "\n" + program.words + (is_root ? " help COMMAND" : " COMMAND --help") +
         " lists the options of a command.\n";
}

std::string text_of_options(const CommandHelp& command, bool all) {
  std::string text, group;
  for (const OptionHelp& option : command.options) {
    if (!all && !option.matters) continue;
    if (option.group != group) text += "\n" + (group = option.group) + "\n";
    text += entry(option.head(), option.text);
  }
  return text;
}

// Formats an example so that it can be copied to a shell: a long line is continued after a backslash.
std::string in_lines(const std::string& example) {
  std::istringstream lines(example);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    for (size_t blank; line.size() > text_width &&
                       (blank = line.rfind(" --", text_width - 2)) != std::string::npos && blank > 4;
         line = "   " + line.substr(blank))
      text += line.substr(0, blank) + " \\\n";
    text += line + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

class Help : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    const CommandHelp help = help_of(*app);
    const bool all =
        mode == CLI::AppFormatMode::All || std::ranges::all_of(help.options, &OptionHelp::matters);
    return hanging("", 0, help.words + ": " + help.description, text_width) + "\nUsage: " + usage_of(help) +
           "\n" +
           (help.commands.empty() ? text_of_options(help, all)
                                  : text_of_commands(help, app->get_parent() == nullptr)) +
           in_lines(help.example) +
           (all ? ""
                : fmt::format("\n{} --help-all lists all {} options.\n", help.words, help.options.size()));
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Help>(); }

CommandHelp help_of(const CLI::App& app) {
  CommandHelp help{.words = words_of(app),
                   .description = by_own_name(app, app.get_description()),
                   .example = by_own_name(app, app.get_footer()),
                   .options = options_of(app)};
  for (const CLI::App* command : app.get_subcommands({})) help.commands.push_back(help_of(*command));
  return help;
}

std::string words_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : words_of(*app.get_parent()) + " " + app.get_name();
}

std::string usage_of(const CommandHelp& command) {
  std::string usage = command.words + " ";
  if (!command.commands.empty()) usage += "COMMAND ";
  for (const OptionHelp& option : command.options)
    if (option.is_word()) usage += option.names[0] + " ";
  return usage + "[OPTIONS]";
}

}  // namespace antichain
