#include "app/cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "framework/error.h"
#include "framework/printable.h"

namespace antichain {
namespace {

// Counts characters, not bytes. Continuation bytes of UTF-8 and colour codes (app/cli/terminal.h) have no
// width.
size_t width_of(const std::string& text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = std::min(text.find('m', i), text.size() - 1);
    else
      width += (text[i] & 0xC0) != 0x80;
  }
  return width;
}

std::string padded(const std::string& text, size_t width, Table::Align align) {
  const std::string blanks(width - width_of(text), ' ');
  return align == Table::Align::left ? text + blanks : blanks + text;
}

constexpr size_t table_indent = 2, readable_columns = 100;

}  // namespace

void Table::add(std::vector<std::string> cells, Style style) {
  ANTICHAIN_CHECK(cells.size() == columns_.size(), "a table row has one cell per column");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back({std::move(cells), style});
}

size_t Table::column_width(size_t column) const {
  size_t width = std::max(width_of(header(column, 0)), width_of(header(column, 1)));
  for (const Row& row : rows_) width = std::max(width, width_of(row.cells[column]));
  return width;
}

size_t Table::line_width(const Columns& columns, size_t gap) const {
  size_t width = table_indent;
  for (const size_t c : columns) width += column_width(c) + gap;
  return width - (columns.empty() ? 0 : gap);
}

std::vector<Table::Columns> Table::in_parts(const Columns& columns, size_t width) const {
  Columns keys;
  for (const size_t c : columns)
    if (c == columns.front() || columns_[c].role == Role::key) keys.push_back(c);
  std::vector<Columns> parts = {keys};
  for (const size_t c : columns) {
    if (std::ranges::find(keys, c) != keys.end()) continue;
    Columns wider = parts.back();
    wider.push_back(c);
    if (parts.back().size() == keys.size() || line_width(wider, 2) <= width)
      parts.back() = wider;
    else
      (parts.emplace_back(keys)).push_back(c);
  }
  return parts;
}

Table::Layout Table::layout(size_t width) const {
  Columns all, in_row, below;
  for (size_t c = 0; c < columns_.size(); ++c) {
    all.push_back(c);
    (columns_[c].role == Role::below ? below : in_row).push_back(c);
  }
  for (const size_t gap : {2, 1})
    if (line_width(all, gap) <= width) return {.parts = {all}, .below = {}, .gap = gap};
  for (const size_t gap : {2, 1})
    if (line_width(in_row, gap) <= width) return {.parts = {in_row}, .below = below, .gap = gap};
  return {.parts = in_parts(in_row, width), .below = below};
}

std::string Table::part(const Columns& columns, const Columns& below, size_t gap, Look look) const {
  std::string text;
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) widths.push_back(column_width(c));
  const auto line = [&](Style style, auto&& cell) {
    std::string row;
    for (const size_t c : columns)
      row += (row.empty() ? "" : std::string(gap, ' ')) + padded(cell(c), widths[c], columns_[c].align);
    row.erase(row.find_last_not_of(' ') + 1);
    if (!row.empty())
      text += std::string(table_indent, ' ') + (look == Look::plain ? row : styled(style, row)) + "\n";
  };
  line(Style::heading, [&](size_t c) { return header(c, 0); });
  line(Style::heading, [&](size_t c) { return header(c, 1); });
  line(Style::plain, [&](size_t c) { return std::string(widths[c], '-'); });
  for (const Row& row : rows_) {
    line(row.style, [&](size_t c) { return row.cells[c]; });
    for (const size_t c : below)
      text += fmt::format("{:{}}{} {}\n", "", table_indent + widths[columns.front()] + gap, header(c, 0),
                          row.cells[c]);
  }
  return text;
}

std::string Table::str(size_t width, Look look) const {
  const Layout all = layout(width == 0 ? text_columns() : width);
  std::string text;
  for (const Columns& columns : all.parts)
    text += (text.empty() ? "" : "\n") + part(columns, text.empty() ? all.below : Columns(), all.gap, look);
  return text;
}

std::string Table::header(size_t column, int line) const {
  const std::string& all = columns_[column].header;
  const size_t end = all.find('\n');
  if (line == 0) return all.substr(0, end);
  return end == std::string::npos ? "" : all.substr(end + 1);
}

std::string hanging(const std::string& head, size_t indent, const std::string& text, size_t width) {
  if (width == 0) width = std::min(text_columns(), readable_columns);
  const std::string blanks(indent, ' ');
  std::string result, line = head + std::string(indent - std::min(indent, width_of(head)), ' ');
  if (!head.empty() && width_of(head) >= indent) {
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

}  // namespace antichain
