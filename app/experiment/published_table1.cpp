#include "app/experiment/published_table1.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "framework/error.h"

namespace antichain {
namespace {

template <class Number>
Number number_in(const std::string& field, const std::string& line) {
  Number value = 0;
  const auto [stop, failed] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failed != std::errc() || stop != field.data() + field.size())
    throw Error(fmt::format("'{}' is no number, in the line '{}' of the published table", field, line));
  return value;
}

PublishedRow parsed_row(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  if (fields.size() != 6)
    throw Error(
        fmt::format("the line '{}' of the published table has {} fields instead of 6", line, fields.size()));
  return {.model = fields[0],
          .devices = number_in<int>(fields[1], line),
          .handsplit_min = fields[2],
          .cudasize_s = number_in<double>(fields[3], line),
          .hashrate_s = number_in<double>(fields[4], line),
          .own_s = number_in<double>(fields[5], line)};
}

}  // namespace

std::vector<PublishedRow> parse_published_table1(std::string_view csv) {
  std::vector<PublishedRow> rows;
  std::istringstream in{std::string(csv)};
  bool header = true;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    if (!header) rows.push_back(parsed_row(line));
    header = false;
  }
  return rows;
}

const PublishedRow* published_row(const std::string& model, int devices) {
  static const std::vector<PublishedRow> rows = parse_published_table1(published_table1_text());
  const auto found = std::ranges::find_if(
      rows, [&](const PublishedRow& row) { return row.model == model && row.devices == devices; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace antichain
