#include "framework/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace antichain {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// Takes a number off the beginning of `text`; returns nothing when there is none, or it is below 0.
std::optional<double> take_number(std::string_view& text) {
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || !std::isfinite(x) || x < 0 || text.starts_with("-")) return {};
  text.remove_prefix(size_t(end - text.data()));
  return x;
}

// Takes the first of `units` that `text` begins with off it.
std::optional<double> take_unit(std::string_view& text, std::initializer_list<Unit> units) {
  for (const Unit& unit : units)
    if (text.starts_with(unit.name)) return text.remove_prefix(unit.name.size()), unit.factor;
  return {};
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = char(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::optional<double> parse_size(std::string_view given) {
  const std::string lowered = lower(given);
  std::string_view text = lowered;
  const auto number = take_number(text);
  if (!number) return {};
  if (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty() || text == "b") return number;
  constexpr std::string_view letters = "kmgtp";
  const size_t power = letters.find(text.front());
  if (power == std::string_view::npos) return {};
  text.remove_prefix(1);
  if (text != "" && text != "b" && text != "i" && text != "ib") return {};
  return *number * std::pow(text == "b" ? 1000. : 1024., double(power + 1));
}

std::optional<double> parse_time(std::string_view text) {
  double sum = 0;
  if (text.empty()) return {};
  for (bool first = true; !text.empty(); first = false) {
    const auto number = take_number(text);
    if (!number) return {};
    const auto unit = first && text.empty() ? std::optional(1.0)
                                            : take_unit(text, {{"ms", 1e-3},
                                                               {"us", 1e-6},
                                                               {"µs", 1e-6},
                                                               {"ns", 1e-9},
                                                               {"min", 60},
                                                               {"m", 60},
                                                               {"h", 3600},
                                                               {"s", 1},
                                                               {"d", 86400}});
    if (!unit) return {};
    sum += *number * *unit;
  }
  return sum;
}

std::string size_text(double bytes) {
  constexpr const char* names[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{:g} byte{}", bytes, bytes == 1 ? "" : "s");
  size_t power = 0;
  for (bytes /= 1024; bytes >= 1024 && power + 1 < std::size(names); bytes /= 1024) ++power;
  return fmt::format("{:.{}f} {}", bytes, bytes == std::floor(bytes) ? 0 : 2, names[power]);
}

}  // namespace antichain
