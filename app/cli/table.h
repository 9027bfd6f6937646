// A Table is a text table: columns are aligned, numbers are on the right, and units stand in a second header
// line. app/cli/number_text.h formats the numbers.
//
// What does not fit a line is never cut, because names are copied and numbers compared. Instead, in this
// order,
//   columns are separated by one blank instead of two;
//   columns that stand `below` move from the row to a line of their own under it;
//   the table is printed in parts, one under the other, each of which begins with its keys.
#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal.h"

namespace antichain {

class Table {
 public:
  enum class Align { left, right };
  enum class Role { plain, key, below };  // the first column is always a key
  struct Column {
    std::string header;  // with the unit in a second line: "forward\nms"
    Align align = Align::right;
    Role role = Role::plain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells, Style = Style::plain);  // one per column
  // Returns lines indented by two blanks, with the header underlined, at most `width` characters wide (0: as
  // text_columns() says). Only a part of a single column may be wider.
  enum class Look { plain, coloured };  // only on terminals with colours
  std::string str(size_t width = 0, Look = Look::coloured) const;

 private:
  using Columns = std::vector<size_t>;  // their numbers
  struct Layout {
    std::vector<Columns> parts;
    Columns below;
    size_t gap = 2;
  };
  struct Row {
    std::vector<std::string> cells;
    Style style;
  };
  std::string header(size_t column, int line) const;
  size_t column_width(size_t column) const;
  size_t line_width(const Columns&, size_t gap) const;
  std::vector<Columns> in_parts(const Columns&, size_t width) const;
  Layout layout(size_t width) const;
  std::string part(const Columns&, const Columns& below, size_t gap, Look) const;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// Returns `head`, and from column `indent` on `text`, wrapped at blanks to lines of at most `width`
// characters (0: as text_columns() says, within a readable width). A longer head has a line of its own.
std::string hanging(const std::string& head, size_t indent, const std::string& text, size_t width = 0);

}  // namespace antichain
