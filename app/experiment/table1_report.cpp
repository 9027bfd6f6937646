#include "app/experiment/table1_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/experiment/published_table1.h"
#include "app/job/experiment_record.h"

namespace antichain {
namespace {

using Cells = std::vector<std::string>;

// A Grid is narrow enough for a terminal and for paper: units stand below the names.
struct Grid {
  std::string title;
  Cells header;
  std::vector<Cells> rows;
};

std::string short_number(double x) { return fmt::format("{:.3g}", x); }

// Returns "14.6" or "2,740".
std::string ratio_words(double x) { return x < 100 ? short_number(x) : grouped(std::llround(x)); }

std::string milliseconds_here(const std::optional<Table1Entry>& entry, double Table1Entry::*value) {
  return entry ? short_number((*entry).*value * 1e3) : "-";
}

std::string published_s(const PublishedRow* row, double PublishedRow::*seconds) {
  return row ? fmt::format("{:.2f}", row->*seconds) : "-";
}

Cells first_cells(const Table1Row& row) { return {row.model, std::to_string(row.devices)}; }

Grid own_method(const std::vector<Table1Row>& rows) {
  Grid grid{"The publication's own method, and antichain here",
            {"model", "devices", "published\ns", "antichain\nms", "times\nas fast", "proved\noptimal"},
            {}};
  for (const Table1Row& row : rows) {
    const PublishedRow* theirs = published_row(row.model, row.devices);
    const std::optional<Table1Entry>& ours = row.entries.back();
    const std::optional<double> ratio = times_as_fast(row);
    Cells cells = first_cells(row);
    cells.push_back(published_s(theirs, &PublishedRow::own_s));
    cells.push_back(milliseconds_here(ours, &Table1Entry::seconds));
    cells.push_back(ratio ? ratio_words(*ratio) : "-");
    cells.push_back(ours ? ours->proved ? "yes" : "no" : "-");
    grid.rows.push_back(cells);
  }
  return grid;
}

Grid simple_methods(const std::vector<Table1Row>& rows) {
  Grid grid{"The methods it compares with, published and here",
            {"model", "devices", "handsplit\npubl. min", "here\nms", "cudasize\npubl. s", "here\nms",
             "hashrate\npubl. s", "here\nms"},
            {}};
  for (const Table1Row& row : rows) {
    const PublishedRow* theirs = published_row(row.model, row.devices);
    const Cells all = {theirs ? theirs->handsplit_min : "-", published_s(theirs, &PublishedRow::cudasize_s),
                       published_s(theirs, &PublishedRow::hashrate_s)};
    Cells cells = first_cells(row);
    for (size_t m = 0; m < all.size(); ++m) {
      cells.push_back(all[m]);
      cells.push_back(milliseconds_here(row.entries[m], &Table1Entry::seconds));
    }
    grid.rows.push_back(cells);
  }
  return grid;
}

Grid slowest_stages(const std::vector<Table1Row>& rows) {
  Grid grid{"What the plans are worth: the slowest stage, ms a micro-batch", {"model", "devices"}, {}};
  for (const Method method : table1_methods) grid.header.emplace_back(name_of(method));
  for (const Table1Row& row : rows) {
    Cells cells = first_cells(row);
    for (const auto& entry : row.entries) cells.push_back(milliseconds_here(entry, &Table1Entry::slowest_s));
    grid.rows.push_back(cells);
  }
  return grid;
}

std::vector<Grid> grids(const std::vector<Table1Row>& rows) {
  return {own_method(rows), simple_methods(rows), slowest_stages(rows)};
}

std::string text_of(const Grid& grid) {
  std::vector<Table::Column> columns;
  for (const std::string& name : grid.header)
    columns.push_back({name, columns.empty() ? Table::Align::left : Table::Align::right});
  Table table(columns);
  for (const Cells& row : grid.rows) table.add(row);
  return grid.title + "\n\n" + table.str();
}

// Moves the units into the line of the names.
Cells in_one_line(Cells header) {
  for (std::string& name : header) std::ranges::replace(name, '\n', ' ');
  return header;
}

std::string beside_the_publication(const std::vector<Table1Row>& rows) {
  std::vector<double> ratios;
  double logarithms = 0;
  for (const Table1Row& row : rows)
    if (const std::optional<double> ratio = times_as_fast(row)) {
      ratios.push_back(*ratio);
      logarithms += std::log(*ratio);
    }
  if (ratios.empty()) return "The publication has no row for these models and devices.";
  const auto [least, most] = std::ranges::minmax(ratios);
  return fmt::format(
      "antichain, which is exact, plans {} to {} times as fast as the publication says of its own method, {} "
      "in "
      "the geometric mean of {}; profiles and machines are not the same.",
      ratio_words(least), ratio_words(most), ratio_words(std::exp(logarithms / double(ratios.size()))),
      counted(int64_t(ratios.size()), "row"));
}

constexpr const char* how_timed =
    "Here: wall time of one core from the profile's text to the plan, the median of three; objective "
    "compute, "
    "one device a stage. Published: seconds, but for handsplit, which is minutes of a person.";

}  // namespace

std::optional<double> times_as_fast(const Table1Row& row) {
  const PublishedRow* theirs = published_row(row.model, row.devices);
  const std::optional<Table1Entry>& ours = row.entries.back();
  if (!theirs || !ours || ours->seconds <= 0) return std::nullopt;
  return theirs->own_s / ours->seconds;
}

std::string table1_text(const std::vector<Table1Row>& rows, const std::string& source) {
  std::string text;
  for (const Grid& grid : grids(rows)) text += text_of(grid) + "\n";
  for (const std::string& sentence : {beside_the_publication(rows), std::string(how_timed), source})
    text += hanging("", 0, sentence, 80);
  for (const Table1Row& row : rows)
    for (const std::string& refusal : row.refusals) text += hanging("-:", 3, refusal, 80);
  return text;
}

ReportDocument table1_report(const std::vector<Table1Row>& rows, const std::string& source) {
  ReportDocument report("Table 1: partitioning time");
  report.paragraph(beside_the_publication(rows));
  report.paragraph(how_timed + (" " + source));
  for (const Grid& grid : grids(rows)) {
    report.heading(grid.title);
    report.table(in_one_line(grid.header), grid.rows);
  }
  for (const Table1Row& row : rows)
    for (const std::string& refusal : row.refusals) report.paragraph("-: " + refusal);
  report.paragraph("Made by " + provenance_line());
  return report;
}

std::string table1_json(const std::vector<Table1Row>& rows) {
  nlohmann::ordered_json json = {{"experiment", "table1"}, {"rows", nlohmann::ordered_json::array()}};
  for (const Table1Row& row : rows) {
    nlohmann::ordered_json of_row = {{"model", row.model}, {"devices", row.devices}};
    for (size_t m = 0; m < table1_methods.size(); ++m)
      if (row.entries[m])
        of_row[std::string(name_of(table1_methods[m]))] = {{"planning_s", row.entries[m]->seconds},
                                                           {"slowest_stage_s", row.entries[m]->slowest_s},
                                                           {"proved_optimal", row.entries[m]->proved}};
    if (const PublishedRow* theirs = published_row(row.model, row.devices))
      of_row["published"] = {{"handsplit_min", theirs->handsplit_min},
                             {"cudasize_s", theirs->cudasize_s},
                             {"hashrate_s", theirs->hashrate_s},
                             {"own_method_s", theirs->own_s}};
    if (const std::optional<double> ratio = times_as_fast(row)) of_row["times_as_fast"] = *ratio;
    json["rows"].push_back(of_row);
  }
  return json.dump(2) + "\n";
}

}  // namespace antichain
