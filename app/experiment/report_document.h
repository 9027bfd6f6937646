// A report consists of headings, paragraphs, tables and pictures. It is written once and printed as Markdown
// and as HTML.
#pragma once

#include <string>
#include <vector>

namespace antichain {

class ReportDocument {
 public:
  explicit ReportDocument(std::string title) : title_(std::move(title)) {}

  void heading(const std::string& text, int level = 2);  // 2 or 3
  void paragraph(const std::string& text);               // plain text, with `code` and **bold**
  // The first column is text, the others are numbers on the right. Cells may have **bold**.
  void table(const std::vector<std::string>& header, std::vector<std::vector<std::string>> rows);
  void picture(const std::string& file, const std::string& caption);  // relative to the report

  std::string markdown() const;
  std::string html() const;  // one page, which needs only its pictures

 private:
  enum class Kind { heading, paragraph, table, picture };
  struct Part {
    Kind kind;
    std::string text, file;
    int level = 0;
    std::vector<std::vector<std::string>> rows;  // of a table, the header first
  };
  static std::string markdown(const Part&);
  static std::string html(const Part&);

  std::string title_;
  std::vector<Part> parts_;
};

}  // namespace antichain
