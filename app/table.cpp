#include "app/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"

namespace antichain {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no place.
size_t width_of(const std::string& text) {
  return size_t(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, Table::Align align) {
  const std::string blanks(width - width_of(text), ' ');
  return align == Table::Align::left ? text + blanks : blanks + text;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  ANTICHAIN_CHECK(cells.size() == columns_.size(), "a table row has one cell per column");
  rows_.push_back(std::move(cells));
}

std::string Table::str() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(width_of(columns_[c].header));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  const auto line = [&](auto&& cell) {
    std::string row;
    for (size_t c = 0; c < columns_.size(); ++c) row += "  " + padded(cell(c), widths[c], columns_[c].align);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  };
  line([&](size_t c) { return columns_[c].header; });
  line([&](size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) line([&](size_t c) { return row[c]; });
  return text;
}

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }
std::string mebibytes(int64_t bytes) { return fmt::format("{:.2f}", double(bytes) / (1 << 20)); }
std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

std::string grouped(int64_t count) {
  std::string digits = std::to_string(count);
  for (int at = int(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

}  // namespace antichain
