#include "app/cli/checks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "framework/error.h"
#include "framework/known_names.h"
#include "framework/parse_number.h"
#include "framework/units.h"

namespace antichain {
namespace {

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

// Returns whether {:g} writes all of the number: it writes the one right below 1 as 1.
bool is_short(double number) { return std::stod(fmt::format("{:g}", number)) <= number; }

// Accepts a value in units, and returns it as a plain number.
Accepts in_units(double least, double most, const std::string& wanted,
                 std::optional<double> (*parse)(std::string_view)) {
  return {[=](const std::string& option, const std::string& text) {
    const std::optional<double> value = parse(text);
    if (!value || *value < least || *value > most) refuse_value(option, wanted, text);
    return fmt::format("{}", *value);
  }};
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

Accepts whole_between(int64_t least, int64_t most) {
  return {[=](const std::string& option, const std::string& text) {
    const auto value = parse_number<int64_t>(text);
    if (!value || *value < least || *value > most)
      refuse_value(option, fmt::format("a whole number from {} to {}", grouped(least), grouped(most)), text);
    return text;
  }};
}

Accepts number_between(double least, double most) {
  return {[=](const std::string& option, const std::string& text) {
    const auto value = parse_number<double>(text);
    if (!value || !(*value >= least && *value <= most))  // in this form it refuses NaN
      refuse_value(
          option,
          fmt::format("a number from {:g} to {}{:g}", least, is_short(most) ? "" : "less than ", most), text);
    return text;
  }};
}

Accepts size_up_to(int64_t most) {
  Accepts accepts =
      in_units(0, double(most), fmt::format("a size up to {} such as 512M or 64GiB", size_text(double(most))),
               parse_whole_size);
  // A whole number of bytes is written without an exponent.
  accepts.read = [units = accepts.read](const std::string& option, const std::string& text) {
    return fmt::format("{}", int64_t(std::stod(units(option, text))));
  };
  return accepts;
}

Accepts rate_up_to(double most) {
  return in_units(0, most, "bytes a second such as 12GB/s or 1e9", parse_rate);
}

Accepts time_between(double least, double most) {
  return in_units(least, most,
                  fmt::format("a time from {:g} to {:g} seconds such as 90, 30min or 20us", least, most),
                  parse_time);
}

Accepts one_of(const std::string& what, std::vector<std::string> known) {
  const auto read = [=](const std::string&, const std::string& name) {
    if (std::ranges::find(known, name) == known.end()) refuse_name(what, name, known);
    return name;
  };
  return {read, known};
}

Accepts checked_by(std::function<void(const std::string&)> parse, std::vector<std::string> names) {
  const auto read = [parse = std::move(parse)](const std::string&, const std::string& text) {
    parse(text);
    return text;
  };
  return {read, std::move(names)};
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
