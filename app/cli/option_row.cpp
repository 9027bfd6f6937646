#include "app/cli/option_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <type_traits>

#include "app/cli/command_parser.h"
#include "framework/error.h"
#include "framework/parse_number.h"

namespace antichain {
namespace {

template <class Number>
void assign(const std::string& text, Number& to) {
  const auto value = parse_number<std::conditional_t<std::is_integral_v<Number>, Number, long double>>(text);
  ANTICHAIN_CHECK(value, "the row accepts only numbers");
  to = Number(*value);
}

template <class Number>
OptionVariable number_variable(Number& to) {
  return {[&to](const std::string& text) { assign(text, to); }, [&to] { return fmt::format("{}", to); }};
}

// Returns the option's name, and the environment's variable where the value is that one's.
std::string where_from(const CLI::Option& option, const std::string& text) {
  const std::string variable = option.get_envname();
  const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
  return value && value == text ? fmt::format("{} (${})", option.get_name(), variable) : option.get_name();
}

}  // namespace

OptionVariable::OptionVariable(std::function<void(const std::string&)> set_it,
                               std::function<std::string()> text_of_it)
    : set(std::move(set_it)), text(std::move(text_of_it)) {}
OptionVariable::OptionVariable(std::string& to)
    : OptionVariable([&to](const auto& text) { to = text; }, [&to] { return to; }) {}
OptionVariable::OptionVariable(int& to) : OptionVariable(number_variable(to)) {}
OptionVariable::OptionVariable(int64_t& to) : OptionVariable(number_variable(to)) {}
OptionVariable::OptionVariable(uint64_t& to) : OptionVariable(number_variable(to)) {}
OptionVariable::OptionVariable(float& to) : OptionVariable(number_variable(to)) {}
OptionVariable::OptionVariable(double& to) : OptionVariable(number_variable(to)) {}
OptionVariable::OptionVariable(std::optional<double>& to)
    : OptionVariable([&to](const std::string& text) { assign(text, to.emplace()); },
                     [&to] { return to ? fmt::format("{}", *to) : ""; }) {}
OptionVariable::OptionVariable(bool& to)
    : OptionVariable([&to](const std::string& text) { to = text == "true"; },
                     [&to] { return to ? "true" : "false"; }) {
  flag = &to;
}
OptionVariable::OptionVariable(std::vector<std::string>& to)
    : OptionVariable(
          [&to](const std::string& text) {
            std::istringstream words(text);
            to.clear();
            for (std::string word; std::getline(words, word, ',');) to.push_back(word);
          },
          [&to] { return fmt::format("{}", fmt::join(to, ",")); }) {
  many = true;
}

const char* name_of(OptionKind kind) {
  constexpr std::array names{"unsaid", "network", "recipe", "data", "last bits", "extent", "speed", "output"};
  return names.at(size_t(kind));
}

std::string OptionRow::parser_name() const { return name.substr(0, name.find(' ')); }

std::string OptionRow::option_name() const { return name.substr(0, name.find_first_of(" ,")); }

std::string OptionRow::setting() const { return option_name().substr(name.starts_with("--") ? 2 : 0); }

std::string OptionRow::value_name() const {
  const size_t blank = name.find(' ');
  return blank == std::string::npos ? "" : name.substr(blank + 1);
}

std::string OptionRow::fact() const {
  if (changes.value) return changes.value();
  return variable.many && variable.text().empty() ? "none" : variable.text();
}

CLI::Option* add_option(CLI::App& command, const std::string& group, std::string name,
                        OptionVariable variable, Accepts accepts, std::string help, Changes changes) {
  OptionRow row{std::move(name), std::move(variable), std::move(accepts), std::move(help),
                std::move(changes)};
  row.usual_fact = row.fact();
  CLI::Option* option = nullptr;
  if (row.variable.flag) {
    option = command.add_flag(row.parser_name(), *row.variable.flag, row.help);
  } else {
    const auto set = [set_it = row.variable.set](const CLI::results_t& words) {
      set_it(words.back());
      return true;
    };
    option = command.add_option(row.parser_name(), set, row.help, false, row.variable.text);
    option->type_name(row.value_name());
    if (row.variable.many) option->join(',');
    if (row.accepts.read) {
      const std::function<std::string(std::string)> accept = [option,
                                                              read = row.accepts.read](std::string text) {
        return read(where_from(*option, text), text);
      };
      option->transform(accept);
    }
    if (!row.help.ends_with("]")) option->capture_default_str();
  }
  option->group(group);
  if (auto* own = dynamic_cast<CommandParser*>(&command)) own->rows.push_back(std::move(row));
  return option;
}

const std::vector<OptionRow>& rows_of(const CLI::App& command) {
  return dynamic_cast<const CommandParser&>(command).rows;
}

void show_first(CLI::App& command, const std::vector<std::string>& options) {
  std::vector<OptionRow>& rows = dynamic_cast<CommandParser&>(command).rows;
  const auto is_one = [&](const OptionRow& row) {
    return std::ranges::find(options, row.option_name()) != options.end();
  };
  ANTICHAIN_CHECK(std::ranges::count_if(rows, is_one) == std::ssize(options),
                  "help shows options that exist");
  for (OptionRow& row : rows) row.matters = is_one(row);
}

}  // namespace antichain
