// A text table: columns aligned, numbers to the right, units in the headers.
#pragma once

#include <string>
#include <vector>

namespace antichain {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string header;  // with the unit: "time ms"
    Align align = Align::right;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);  // one per column
  std::string str() const;                   // lines indented by two blanks, the header underlined

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Numbers as tables show them.
std::string milliseconds(double seconds);  // "12.34"
std::string mebibytes(int64_t bytes);      // "3.50"
std::string percent(double share);         // "12.3"
std::string grouped(int64_t count);        // "11,173,962"

}  // namespace antichain
