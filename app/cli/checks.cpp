#include "app/cli/checks.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "framework/error.h"
#include "framework/known_names.h"
#include "framework/units.h"

namespace antichain {
namespace {

// Reads the whole text as a number, or returns false.
template <typename Number>
bool read(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc() && stop == end && !text.empty();
}

// This makes a file to find out, because permissions say nothing to root nor on a read-only file system.
bool takes_files(const std::filesystem::path& folder) {
  std::string name = (folder / ".antichain-XXXXXX").string();
  const int file = ::mkstemp(name.data());
  if (file < 0) return false;
  ::close(file);
  return ::unlink(name.c_str()) == 0;
}

[[noreturn]] void refuse_value(const std::string& option, const std::string& wanted,
                               const std::string& given) {
  throw Error(fmt::format("{} takes {}, not '{}'", option, wanted, given), "", ExitCode::usage);
}

}  // namespace

CLI::Option* check_whole(CLI::Option* option, int64_t least, int64_t most) {
  return option->check([=, name = option->get_name()](const std::string& text) {
    int64_t value = 0;
    if (!read(text, value) || value < least || value > most)
      refuse_value(name, fmt::format("a whole number from {} to {}", grouped(least), grouped(most)), text);
    return std::string();
  });
}

namespace {

// Returns the option's name, and the environment's variable where the value is that one's.
std::string where_from(const CLI::Option& option, const std::string& text) {
  const std::string variable = option.get_envname();
  const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
  return value && value == text ? fmt::format("{} (${})", option.get_name(), variable) : option.get_name();
}

// Returns whether {:g} writes all of the number: it writes the one right below 1 as 1.
bool is_short(double number) { return std::stod(fmt::format("{:g}", number)) <= number; }

}  // namespace

CLI::Option* check_number(CLI::Option* option, double least, double most) {
  return option->check([=](const std::string& text) {
    double value = 0;
    if (!read(text, value) || !(value >= least && value <= most))  // in this form it refuses NaN
      refuse_value(
          where_from(*option, text),
          fmt::format("a number from {:g} to {}{:g}", least, is_short(most) ? "" : "less than ", most), text);
    return std::string();
  });
}

namespace {

// Returns what the words mean as a plain number, in the form in which the option reads it.
CLI::Option* check_unit(CLI::Option* option, double least, double most, const std::string& wanted,
                        std::optional<double> (*parse)(std::string_view)) {
  const auto plain = [=, name = option->get_name()](std::string text) {
    const std::optional<double> value = parse(text);
    if (!value || *value < least || *value > most) refuse_value(name, wanted, text);
    return fmt::format("{}", *value);
  };
  return option->transform(std::function<std::string(std::string)>(plain));
}

std::optional<double> parse_whole_size(std::string_view text) {
  const auto bytes = parse_size(text);
  return bytes && *bytes == std::floor(*bytes) ? bytes : std::nullopt;
}

std::optional<double> parse_rate(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  return parse_size(text);
}

}  // namespace

CLI::Option* check_size(CLI::Option* option, int64_t most) {
  return check_unit(option, 0, double(most),
                    fmt::format("a size up to {} such as 512M or 64GiB", size_text(double(most))),
                    parse_whole_size);
}

CLI::Option* check_rate(CLI::Option* option, double most) {
  return check_unit(option, 0, most, "bytes a second such as 12GB/s or 1e9", parse_rate);
}

CLI::Option* check_time(CLI::Option* option, double least, double most) {
  return check_unit(option, least, most,
                    fmt::format("a time from {:g} to {:g} seconds such as 90, 30min or 20us", least, most),
                    parse_time);
}

CLI::Option* check_name(CLI::Option* option, const std::string& what, std::vector<std::string> known) {
  return option->check([what, known = std::move(known)](const std::string& name) {
    if (std::ranges::find(known, name) == known.end()) refuse_name(what, name, known);
    return std::string();
  });
}

void check_writable(const std::vector<std::string>& files) {
  namespace fs = std::filesystem;
  for (const std::string& file : files) {
    if (file.empty() || is_stream(file)) continue;
    std::error_code ignored;
    const fs::path folder = fs::path(file).has_parent_path() ? fs::path(file).parent_path() : fs::path(".");
    const auto refuse = [&](const std::string& why, const char* hint) {
      throw Error(fmt::format("can't write {}: {}", file, why), hint);
    };
    if (!fs::is_directory(folder, ignored)) refuse("there is no folder " + folder.string(), "make it first");
    if (fs::is_directory(file, ignored)) refuse("it is a folder", "name a file in it");
    if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored))
      refuse("it is no file that can be written to", "name a file");
    if (!takes_files(folder))
      refuse("the folder " + folder.string() + " takes no files", "name a file in a folder of yours");
  }
}

}  // namespace antichain
