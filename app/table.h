// A text table: columns aligned, numbers to the right, units in a second header line; and numbers as text shows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antichain {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string header;  // with the unit in a second line: "forward\nms"
    Align align = Align::right;
    size_t most = 1000;  // characters; longer cells end in "…"
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);  // one per column
  // Lines indented by two blanks, the header underlined. Of lines longer than `width` characters, texts are cut, down to
  // their header or 8; numbers never.
  std::string str(size_t width = 100) const;

 private:
  std::string header(size_t column, int line) const;
  size_t header_width(size_t column) const;
  std::vector<size_t> widths(size_t width) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `head`, and from column `indent` on `text`, wrapped at blanks to lines of at most `width` characters. A longer head has a
// line of its own.
std::string hanging(const std::string& head, size_t indent, const std::string& text, size_t width = 100);

// Numbers as tables show them.
std::string milliseconds(double seconds);  // "12.34"
std::string mebibytes(int64_t bytes);      // "3.50"
std::string percent(double share);         // "12.3"
std::string grouped(int64_t count);        // "11,173,962"
// "1 stage", "2 stages"; `things` where it is not made by an s.
std::string counted(int64_t count, const std::string& thing, const std::string& things = "");

// In columns where most numbers are nothing: "-" for exactly 0.
std::string milliseconds_or_dash(double seconds);
std::string mebibytes_or_dash(int64_t bytes);

}  // namespace antichain
