#include "app/experiment/report_document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace antichain {
namespace {

constexpr const char* page = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
body {{ font: 15px/1.5 Helvetica, Arial, sans-serif; color: #222; max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; }}
h2 {{ font-size: 1.3rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }}
h3 {{ font-size: 1.1rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; }}
th, td {{ padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid #ddd;
  font-variant-numeric: tabular-nums; }}
td {{ white-space: nowrap; }} td.text {{ white-space: normal; }}
table.dense th, table.dense td {{ padding: 0.2rem 0.35rem; font-size: 12px; }}
th:first-child, td:first-child {{ text-align: left; }}
th {{ border-bottom: 2px solid #888; vertical-align: bottom; }}
figure {{ margin: 1.2rem 0; }} img {{ max-width: 100%; max-height: 60rem; }}
figcaption {{ color: #555; font-size: 13px; }}
code {{ background: #f2f2f2; padding: 0 0.2em; overflow-wrap: anywhere; }}
@page {{ size: A4 landscape; margin: 12mm; }}
@media print {{ body {{ max-width: none; margin: 0; padding: 0; }} .wide {{ overflow: visible; }}
  tr, figure {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<h1>{0}</h1>
{1}</body>
</html>
)";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

// Every second `mark` closes the element that the one before opened.
std::string paired(const std::string& text, const std::string& mark, const std::string& element) {
  std::string result;
  size_t from = 0;
  for (bool open = true;; open = !open) {
    const size_t at = text.find(mark, from);
    result += text.substr(from, at - from);
    if (at == std::string::npos) return result;
    result += fmt::format("<{}{}>", open ? "" : "/", element);
    from = at + mark.size();
  }
}

std::string inline_html(const std::string& text) {
  return paired(paired(escaped(text), "**", "b"), "`", "code");
}

// Escapes what would end the cell's column.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, 1, '\\');
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + cell(text) + " |";
  return line + "\n";
}

// Lets a header break after the characters that join words.
std::string with_breaks(const std::string& html) {
  std::string result;
  for (const char c : html) {
    result += c;
    if (c == '+' || c == '-' || c == '_') result += "<wbr>";
  }
  return result;
}

std::string header_row(const std::vector<std::string>& cells) {
  std::string line = "<tr>";
  for (const std::string& text : cells) line += fmt::format("<th>{}</th>", with_breaks(inline_html(text)));
  return line + "</tr>\n";
}

// Sentences are wrapped in their cell; numbers and names are not.
std::string body_row(const std::vector<std::string>& cells) {
  constexpr size_t sentence = 60;
  std::string line = "<tr>";
  for (const std::string& text : cells)
    line += fmt::format("<td{}>{}</td>", text.size() > sentence ? " class=\"text\"" : "", inline_html(text));
  return line + "</tr>\n";
}

}  // namespace

void ReportDocument::heading(const std::string& text, int level) {
  parts_.push_back({.kind = Kind::heading, .text = text, .level = level});
}

void ReportDocument::paragraph(const std::string& text) {
  parts_.push_back({.kind = Kind::paragraph, .text = text});
}

void ReportDocument::table(const std::vector<std::string>& header,
                           std::vector<std::vector<std::string>> rows) {
  rows.insert(rows.begin(), header);
  parts_.push_back({.kind = Kind::table, .rows = std::move(rows)});
}

void ReportDocument::picture(const std::string& file, const std::string& caption) {
  parts_.push_back({.kind = Kind::picture, .text = caption, .file = file});
}

std::string ReportDocument::markdown(const Part& part) {
  switch (part.kind) {
    case Kind::heading:
      return std::string(size_t(part.level), '#') + " " + part.text + "\n\n";
    case Kind::paragraph:
      return part.text + "\n\n";
    case Kind::picture:
      return fmt::format("![{}]({})\n\n", part.text, part.file);
    case Kind::table:
      break;
  }
  std::string text = markdown_row(part.rows[0]) + "|---|";
  for (size_t column = 1; column < part.rows[0].size(); ++column) text += "---:|";
  text += "\n";
  for (size_t row = 1; row < part.rows.size(); ++row) text += markdown_row(part.rows[row]);
  return text + "\n";
}

std::string ReportDocument::html(const Part& part) {
  switch (part.kind) {
    case Kind::heading:
      return fmt::format("<h{0}>{1}</h{0}>\n", part.level, inline_html(part.text));
    case Kind::paragraph:
      return fmt::format("<p>{}</p>\n", inline_html(part.text));
    case Kind::picture:
      return fmt::format(
          "<figure><img src=\"{0}\" alt=\"{1}\" loading=\"lazy\"><figcaption>{1}</figcaption></figure>\n",
          escaped(part.file), escaped(part.text));
    case Kind::table:
      break;
  }
  constexpr size_t many_columns = 8;
  std::string text = fmt::format("<div class=\"wide\"><table{}>\n",
                                 part.rows[0].size() > many_columns ? " class=\"dense\"" : "") +
                     header_row(part.rows[0]);
  for (size_t row = 1; row < part.rows.size(); ++row) text += body_row(part.rows[row]);
  return text + "</table></div>\n";
}

std::string ReportDocument::markdown() const {
  std::string text = "# " + title_ + "\n\n";
  for (const Part& part : parts_) text += markdown(part);
  return text;
}

std::string ReportDocument::html() const {
  std::string text;
  for (const Part& part : parts_) text += html(part);
  return fmt::format(fmt::runtime(page), escaped(title_), text);
}

}  // namespace antichain
