// This file compares names as people number things: node2 comes before node10.
#pragma once

#include <string_view>

namespace antichain {

// This is a strict total order. Runs of digits compare by value and everything else byte by byte. Texts that
// differ only in leading zeros (node7, node07) compare as texts.
inline bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto digits_end = [&](std::string_view text, size_t at) {
    while (at < text.size() && digit(text[at])) ++at;
    return at;
  };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    const size_t a_end = digits_end(a, i), b_end = digits_end(b, j);
    while (i + 1 < a_end && a[i] == '0') ++i;
    while (j + 1 < b_end && b[j] == '0') ++j;
    if (a_end - i != b_end - j) return a_end - i < b_end - j;
    if (const int order = a.substr(i, a_end - i).compare(b.substr(j, b_end - j)); order != 0)
      return order < 0;
    i = a_end, j = b_end;
  }
  const bool a_ends = i == a.size(), b_ends = j == b.size();
  return a_ends != b_ends ? a_ends : a < b;
}

}  // namespace antichain
