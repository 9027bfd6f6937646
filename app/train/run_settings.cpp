#include "app/train/run_settings.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>

#include "app/cli/option_row.h"
#include "framework/parse_number.h"
#include "framework/version.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

bool is_given(const CLI::App& command, const OptionRow& row) {
  return command.get_option(row.option_name())->count() > 0;
}

// Returns "0.05" as a number, and other texts as they are.
Json typed(const std::string& text) {
  if (const auto whole = parse_number<int64_t>(text)) return *whole;
  if (const auto x = parse_number<double>(text); x && std::isfinite(*x)) return *x;
  return text;
}

Json value_of(const OptionRow& row, const std::string& text) {
  if (row.variable.flag) return text == "true";
  const std::string type = row.value_name();
  return type.find("FILE") != type.npos || type.find("DIR") != type.npos ? Json(text) : typed(text);
}

}  // namespace

Json settings_in_force(const CLI::App& command) {
  Json all = Json::object();
  for (const OptionRow& row : rows_of(command)) {
    if (row.setting() == "config") continue;
    const std::string text = row.variable.text();
    // Such a value stands for what the help has in brackets.
    const bool open = row.help.ends_with("]") && (text == "0" || text == "-1") && !is_given(command, row);
    all[row.setting()] = text.empty() || open ? Json() : value_of(row, text);
  }
  return all;
}

std::string given_as_toml(const CLI::App& command) {
  std::string text = fmt::format(
      "# What this run of antichain {0} was told; run.json has all that was in force.\n"
      "# antichain {1} --config FILE --results ANOTHER does it again.\n\n[{1}]\n",
      version(), command.get_name());
  for (const OptionRow& row : rows_of(command)) {
    const CLI::Option& option = *command.get_option(row.option_name());
    if (option.count() == 0 || option.get_group() == "Output" || option.get_group() == "Checkpoints")
      continue;
    text += fmt::format("{} = {}\n", row.setting(), value_of(row, option.reduced_results().back()).dump());
  }
  return text;
}

}  // namespace antichain
