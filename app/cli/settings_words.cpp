#include "app/cli/settings_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "app/cli/settings_file.h"
#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/known_names.h"

namespace antichain {
namespace {

// A SettingPlace is the line of a file that an error message refers to.
class SettingPlace {
 public:
  SettingPlace(const std::string& file, int line) : text_(fmt::format("{}:{}", file, line)) {}
  [[noreturn]] void refuse(const std::string& why, const std::string& hint = "") const {
    throw Error(fmt::format("{}: {}", text_, why), hint, ExitCode::usage);
  }

 private:
  std::string text_;
};

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : fmt::format("did you mean '{}'?", near);
}

const CLI::App& command_of(const CLI::App& program, const SettingsSection& section,
                           const SettingPlace& place) {
  const CLI::App* app = &program;
  for (const std::string& name : section.path) {
    const CLI::App* const next = find_command(*app, name);
    if (next == nullptr)
      place.refuse(fmt::format("[{}] names no command", fmt::join(section.path, ".")),
                   did_you_mean(name, command_names(*app)));
    app = next;
  }
  return *app;
}

// Checks that the value has the type that the option's help names.
void check_kind(const CLI::Option& option, const Setting& setting, const SettingPlace& place) {
  using enum Setting::Kind;
  const bool flag = option.get_items_expected_max() == 0;
  const std::string type = option.get_type_name();
  const bool text_only = type == "NAME" || type.find("FILE") != type.npos || type.find("DIR") != type.npos;
  if (flag && setting.kind != truth) place.refuse(fmt::format("'{}' takes true or false", setting.name));
  if (!flag && setting.kind == truth)
    place.refuse(fmt::format("'{}' takes a value, not {}", setting.name, setting.value));
  if (text_only && setting.kind == number)
    place.refuse(fmt::format("'{}' takes a text in quotes, not the number {}", setting.name, setting.value));
  if (!flag && setting.value.empty())
    place.refuse(fmt::format("'{}' has an empty value", setting.name), "leave the line out");
}

// Runs the option's own check on the value.
void check_value(CLI::Option& option, const Setting& setting, const SettingPlace& place) {
  std::string why;
  try {
    option.add_result(setting.value);
    option.reduced_results();
  } catch (const std::exception& error) {
    why = error.what();
  }
  option.clear();
  if (!why.empty()) place.refuse(why);
}

std::vector<std::string> names_of_settings(const CLI::App& command) {
  std::vector<std::string> names = option_names(command);
  std::erase_if(names, [&](const std::string& name) { return find_option(command, name) == nullptr; });
  return names;
}

void check_setting(const CLI::App& command, const Setting& setting, const SettingPlace& place) {
  CLI::Option* const option = find_option(command, setting.name);
  if (option == nullptr) {
    place.refuse(fmt::format("{} has no option '{}'", command.get_name(), setting.name),
                 did_you_mean(setting.name, names_of_settings(command)));
  }
  check_kind(*option, setting, place);
  if (option->get_items_expected_max() > 0) check_value(*option, setting, place);
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const auto is_it = [&](const CLI::App* command) { return command->get_name() == name; };
  const std::vector<const CLI::App*> found = app.get_subcommands(is_it);
  return found.empty() ? nullptr : found[0];
}

CLI::Option* find_option(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    const bool ours = option != command.get_help_ptr() && option != command.get_help_all_ptr() &&
                      option->get_lnames() != CLI::results_t{"config"};
    if (ours && std::ranges::find(option->get_lnames(), name) != option->get_lnames().end())
      return const_cast<CLI::Option*>(option);
  }
  return nullptr;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return names;
}

std::vector<std::string> settings_words(const CLI::App& program, const std::vector<std::string>& path,
                                        const std::string& file) {
  std::vector<std::string> above, own;
  for (const SettingsSection& section : parse_settings_file(read_bounded(file, most_settings_bytes), file)) {
    const bool for_all = section.path.empty();
    SettingsSection meant = section;
    if (for_all) meant.path = path;
    const CLI::App& command = command_of(program, meant, SettingPlace(file, section.line));
    for (const Setting& setting : section.settings) {
      check_setting(command, setting, SettingPlace(file, setting.line));
      if (meant.path == path)
        (for_all ? above : own).push_back(fmt::format("--{}={}", setting.name, setting.value));
    }
  }
  above.insert(above.end(), own.begin(), own.end());
  return above;
}

}  // namespace antichain
