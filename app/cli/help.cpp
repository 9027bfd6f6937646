#include "app/cli/help.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "app/cli/table.h"

namespace antichain {
namespace {

constexpr size_t text_width = 80, option_width = 26;

// Texts say "antichain plan". Another program that calls run() (app/run.h) shows its own name there.
std::string by_own_name(const CLI::App& app, std::string text) {
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  const std::string ours = "antichain ";
  for (const CLI::App* command : root->get_subcommands({}))
    for (size_t at = 0; (at = text.find(ours + command->get_name(), at)) != std::string::npos; ++at)
      text.replace(at, ours.size(), root->get_name() + " ");
  return text;
}

std::string entry(const std::string& head, const std::string& text) {
  return hanging("  " + head, option_width, text, text_width);
}

std::string entry(const CLI::App& app, const CLI::Option& option) {
  const bool positional = option.get_lnames().empty();
  std::string head = positional ? option.get_single_name() : "--" + option.get_lnames().front();
  if (!positional && option.get_items_expected_max() > 0 && !option.get_type_name().empty())
    head += " " + option.get_type_name();
  std::string text = by_own_name(app, option.get_description());
  if (option.get_required()) text += " [required]";
  if (!option.get_default_str().empty()) text += fmt::format(" [{}]", option.get_default_str());
  return entry(head, text);
}

// Returns "antichain data pack".
std::string words_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : words_of(*app.get_parent()) + " " + app.get_name();
}

std::string commands_of(const CLI::App& app, const std::string& path) {
  std::string text = "\nCommands\n";
  for (const CLI::App* command : app.get_subcommands({}))
    text += entry(command->get_name(), command->get_description());
  const bool all = app.get_parent() == nullptr;
  if (all)
    text += entry("help", "list the options of a command: " + path + " help train") +
            entry("version", "print the version");
  return text + "\n" + (all ? path + " help COMMAND" : path + " COMMAND --help") +
         " lists the options of a command.\n";
}

// Returns "A B ": what a command takes without an option name.
std::string operands_of(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options())
    if (option->get_lnames().empty()) text += option->get_single_name() + " ";
  return text;
}

std::string options_of(const CLI::App& command) {
  std::vector<std::string> groups;  // in the order of declaration
  for (const CLI::Option* option : command.get_options()) {
    if (option != command.get_help_ptr() && std::ranges::find(groups, option->get_group()) == groups.end())
      groups.push_back(option->get_group());
  }
  if (const auto output = std::ranges::find(groups, "Output"); output != groups.end())
    std::rotate(output, output + 1, groups.end());  // --config is in it, and is declared first
  std::string text;
  for (const std::string& group : groups) {
    text += "\n" + group + "\n";
    for (const CLI::Option* option : command.get_options())
      if (option != command.get_help_ptr() && option->get_group() == group) text += entry(command, *option);
  }
  return text;
}

// Formats the example of a footer so that it can be copied to a shell: a long line is continued after a
// backslash.
std::string footer_of(const CLI::App& app) {
  std::istringstream lines(by_own_name(app, app.get_footer()));
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
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const bool group = !app->get_subcommands({}).empty();
    const std::string name = words_of(*app);
    return fmt::format("{}\nUsage: {} {}[OPTIONS]\n{}{}",
                       hanging("", 0, name + ": " + app->get_description(), text_width), name,
                       group ? "COMMAND " : operands_of(*app),
                       group ? commands_of(*app, name) : options_of(*app), footer_of(*app));
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Help>(); }

}  // namespace antichain
