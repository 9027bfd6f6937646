#include "framework/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace antichain {
namespace {

struct Character {
  size_t bytes = 1;
  bool shown = false;
};

// Returns false for characters that move, hide or reorder other text (Unicode's categories Cc, Cf, Zl and Zp,
// as far as terminals obey them).
bool harmless(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range refused[] = {
      {0x00, 0x1F},     {0x7F, 0x9F},     {0x061C, 0x061C}, {0x200B, 0x200F},   {0x2028, 0x202E},
      {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
  };
  return std::ranges::none_of(refused, [&](const Range& r) { return code >= r.first && code <= r.last; });
}

// Returns the character that begins the text. A byte that begins no UTF-8 character stands alone and is not
// shown.
Character first_of(std::string_view text) {
  const auto byte = [&](size_t i) { return uint32_t(static_cast<unsigned char>(text[i])); };
  const uint32_t head = byte(0);
  if (head < 0x80) return {1, harmless(head)};
  const size_t length = head >= 0xF0 ? 4 : head >= 0xE0 ? 3 : 2;
  if (head < 0xC2 || head > 0xF4 || text.size() < length) return {};
  uint32_t code = head & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {length, harmless(code)};
}

void append_escaped(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const Character c = first_of(text);
    for (size_t i = 0; i < c.bytes && !c.shown; ++i)
      fmt::format_to(std::back_inserter(to), "\\x{:02x}", static_cast<unsigned char>(text[i]));
    if (c.shown) to += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
}

// Returns the nearest place, at or before `at`, that cuts no character of valid UTF-8.
size_t between_characters(std::string_view text, size_t at) {
  for (size_t back = 0; back < 3 && at > back; ++back)
    if ((text[at - back] & 0xC0) != 0x80) return at - back;
  return at;
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  std::string result;
  if (text.size() <= most) {
    append_escaped(result, text);
    return result;
  }
  const size_t head = between_characters(text, most * 2 / 3),
               tail = between_characters(text, text.size() - most / 3);
  append_escaped(result, text.substr(0, head));
  fmt::format_to(std::back_inserter(result), "… ({} bytes left out) …", tail - head);
  append_escaped(result, text.substr(tail));
  return result;
}

std::string printable_lines(std::string_view text, size_t most_a_line) {
  constexpr size_t most_lines = 2'000;
  std::string result;
  size_t begin = 0;
  for (size_t at = 0, lines = 0; at < text.size() && lines < most_lines; ++at) {
    const bool ours = at + 1 == text.size() || text[at + 1] == ' ' || text[at + 1] == '\n';
    if (text[at] != '\n' || !ours) continue;
    result += printable(text.substr(begin, at - begin), most_a_line) + "\n";
    begin = at + 1;
    ++lines;
  }
  return result + printable(text.substr(begin), most_a_line);
}

}  // namespace antichain
