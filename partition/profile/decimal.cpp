#include "partition/profile/decimal.h"

#include <algorithm>
#include <charconv>

namespace antichain {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

// Moves digits from the text's front to `digits` and returns how many there were.
size_t take_digits(std::string_view& text, std::string& digits) {
  const size_t count = size_t(std::find_if_not(text.begin(), text.end(), digit) - text.begin());
  digits += text.substr(0, count);
  text.remove_prefix(count);
  return count;
}

bool take(std::string_view& text, char c) {
  const bool there = !text.empty() && text[0] == c;
  if (there) text.remove_prefix(1);
  return there;
}

// Returns the number after an 'e', or nullopt when it is no number or larger than any double's exponent.
std::optional<int> exponent(std::string_view text) {
  if (text.starts_with("+")) {
    text.remove_prefix(1);
    if (text.starts_with("-")) return {};
  }
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole && value >= -999 && value <= 999 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<Decimal> decimal(std::string_view text) {
  Decimal number;
  number.negative = take(text, '-');
  size_t count = take_digits(text, number.digits);
  if (take(text, '.')) {
    const size_t decimals = take_digits(text, number.digits);
    number.exponent = -int64_t(decimals);
    count += decimals;
  }
  if (count == 0) return {};
  if (take(text, 'e') || take(text, 'E')) {
    const std::optional<int> e = exponent(text);
    if (!e) return {};
    number.exponent += *e;
    text = {};
  }
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  return text.empty() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> scaled(const Decimal& number, int shift, int64_t most) {
  const int64_t digits = int64_t(number.digits.size()), point = digits + number.exponent + shift;
  int64_t value = 0;
  const auto append = [&](int next) {
    return value <= (most - next) / 10 && (value = 10 * value + next, true);
  };
  for (int64_t i = 0; i < point && digits > 0; ++i)
    if (!append(i < digits ? number.digits[size_t(i)] - '0' : 0)) return {};
  const bool up = point >= 0 && point < digits && number.digits[size_t(point)] >= '5';
  if (up && value == most) return {};
  return value + (up ? 1 : 0);
}

}  // namespace antichain
