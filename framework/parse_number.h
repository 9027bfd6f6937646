// Reads texts as numbers.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace antichain {

// Returns the number that the whole text is, or nothing. Neither a blank nor a '+' may stand before it.
template <class Number, class... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns the numbers of a list such as "0.5,0.75", or nothing where a part of it is none.
template <class Number>
std::optional<std::vector<Number>> parse_numbers(std::string_view list) {
  std::vector<Number> numbers;
  while (true) {
    const size_t comma = list.find(',');
    const std::optional<Number> number = parse_number<Number>(list.substr(0, comma));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    if (comma == list.npos) return numbers;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace antichain
