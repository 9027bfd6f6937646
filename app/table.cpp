#include "app/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "framework/error.h"
#include "framework/printable.h"

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

std::string shortened(const std::string& text, size_t most) {
  if (width_of(text) <= most) return text;
  size_t end = 0;
  for (size_t begun = 0; end < text.size(); ++end)
    if ((text[end] & 0xC0) != 0x80 && ++begun == most) break;
  return text.substr(0, end) + "…";
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  ANTICHAIN_CHECK(cells.size() == columns_.size(), "a table row has one cell per column");
  for (size_t c = 0; c < cells.size(); ++c) cells[c] = shortened(printable(cells[c]), columns_[c].most);
  rows_.push_back(std::move(cells));
}

size_t Table::header_width(size_t column) const {
  return std::max(width_of(header(column, 0)), width_of(header(column, 1)));
}

std::vector<size_t> Table::widths(size_t width) const {
  std::vector<size_t> widths;
  size_t all = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(header_width(c));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width_of(row[c]));
    all += 2 + widths[c];
  }
  for (; all > width; --all) {
    const auto spare = [&](size_t c) {
      const size_t least = std::max<size_t>(header_width(c), 8);
      return columns_[c].align == Align::left && widths[c] > least ? widths[c] - least : 0;
    };
    size_t widest = 0;
    for (size_t c = 1; c < columns_.size(); ++c)
      if (spare(c) > spare(widest)) widest = c;
    if (columns_.empty() || spare(widest) == 0) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::str(size_t width) const {
  const std::vector<size_t> widths = this->widths(width);
  std::string text;
  const auto line = [&](auto&& cell) {
    std::string row;
    for (size_t c = 0; c < columns_.size(); ++c)
      row += "  " + padded(shortened(cell(c), widths[c]), widths[c], columns_[c].align);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row.empty() ? "" : row + "\n";
  };
  line([&](size_t c) { return header(c, 0); });
  line([&](size_t c) { return header(c, 1); });
  line([&](size_t c) { return std::string(widths[c], '-'); });
  for (const auto& row : rows_) line([&](size_t c) { return row[c]; });
  return text;
}

std::string Table::header(size_t column, int line) const {
  const std::string& all = columns_[column].header;
  const size_t end = all.find('\n');
  if (line == 0) return all.substr(0, end);
  return end == std::string::npos ? "" : all.substr(end + 1);
}

std::string hanging(const std::string& head, size_t indent, const std::string& text, size_t width) {
  const std::string blanks(indent, ' ');
  std::string result, line = head + std::string(indent - std::min(indent, width_of(head)), ' ');
  if (width_of(head) >= indent) {
    result = head + "\n";
    line = blanks;
  }
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (width_of(line) > indent && width_of(line) + 1 + width_of(word) > width) {
      result += line + "\n";
      line = blanks;
    }
    line += (width_of(line) == indent ? "" : " ") + word;
  }
  return result + line + "\n";
}

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e3); }
std::string mebibytes(int64_t bytes) { return fmt::format("{:.2f}", double(bytes) / (1 << 20)); }
std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

std::string milliseconds_or_dash(double seconds) { return seconds == 0 ? "-" : milliseconds(seconds); }
std::string mebibytes_or_dash(int64_t bytes) { return bytes == 0 ? "-" : mebibytes(bytes); }

std::string counted(int64_t count, const std::string& thing, const std::string& things) {
  return grouped(count) + " " + (count == 1 ? thing : things.empty() ? thing + "s" : things);
}

std::string grouped(int64_t count) {
  std::string digits = std::to_string(count);
  for (int at = int(digits.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) digits.insert(size_t(at), ",");
  return digits;
}

}  // namespace antichain
