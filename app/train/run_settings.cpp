#include "app/train/run_settings.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>

#include "framework/version.h"

namespace antichain {
namespace {

using Json = nlohmann::ordered_json;

bool is_setting(const CLI::Option& option) {
  if (option.get_lnames().empty()) return false;
  const std::string& name = option.get_lnames().front();
  return name != "help" && name != "config";
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// Returns a flag's value: --nesterov is true, --no-nesterov is false.
bool is_true(const CLI::Option& flag) { return flag.results().back() == "true"; }

bool names_text(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos;
}

template <class Number>
bool is_number(const std::string& text, Number& x) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  return error == std::errc() && end == text.data() + text.size();
}

Json value_of(const CLI::Option& option, const std::string& text) {
  return names_text(option) ? Json(text) : typed(text);
}

// CLI11 converts the variable behind an option to text.
std::string text_in_force(CLI::Option& option) {
  if (option.count() > 0) return option.results().back();
  return option.capture_default_str()->get_default_str();
}

Json in_force(CLI::Option& option) {
  if (is_flag(option)) return option.count() > 0 && is_true(option);
  const bool has_default = option.count() > 0 || !option.get_default_str().empty();
  const std::string text = text_in_force(option);
  return text.empty() || (!has_default && (text == "0" || text == "-1")) ? Json() : value_of(option, text);
}

}  // namespace

Json typed(const std::string& text) {
  int64_t whole = 0;
  double x = 0;
  if (is_number(text, whole)) return whole;
  if (is_number(text, x) && std::isfinite(x)) return x;
  return text;
}

Json settings_in_force(CLI::App& command) {
  Json all = Json::object();
  for (CLI::Option* option : command.get_options())
    if (is_setting(*option)) all[option->get_lnames().front()] = in_force(*option);
  return all;
}

std::string given_as_toml(const CLI::App& command) {
  std::string text = fmt::format(
      "# What this run of antichain {0} was told; run.json has all that was in force.\n"
      "# antichain {1} --config FILE --results ANOTHER does it again.\n\n[{1}]\n",
      version(), command.get_name());
  for (const CLI::Option* option : command.get_options()) {
    if (!is_setting(*option) || option->count() == 0) continue;
    if (option->get_group() == "Output" || option->get_group() == "Checkpoints") continue;
    const Json value =
        is_flag(*option) ? Json(is_true(*option)) : value_of(*option, option->results().back());
    text += fmt::format("{} = {}\n", option->get_lnames().front(), value.dump());
  }
  return text;
}

}  // namespace antichain
