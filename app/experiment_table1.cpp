// antichain experiment table1: how long partitioning takes, the paper's Table 1 anew.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include "app/child_process.h"
#include "app/experiment_commands.h"
#include "app/experiment_networks.h"
#include "app/experiment_record.h"
#include "app/report_document.h"
#include "app/table.h"
#include "framework/error.h"
#include "framework/json.h"
#include "partition/planner.h"
#include "partition/read_profile.h"
#include "pipeline/median.h"
#include "pipeline/seconds.h"

namespace antichain {
namespace {

// Of the paper's own times only the range over the whole table is known to us.
constexpr double paper_best_s = 0.01, paper_worst_s = 4.12;
constexpr std::array table_methods = {"handsplit", "cudasize", "hashrate", "antichain"};

struct Table1Options {
  std::string profiles, models = "all", devices = "4,8", out = "antichain-table1";
};

struct Entry {
  double seconds = 0;  // from the profile's text to the plan
  double slowest_s = 0;
  bool proved = false;
};
struct Row {
  std::string model;
  int devices = 0;
  std::vector<std::optional<Entry>> entries;  // one per method; none where it refuses
  std::vector<std::string> refusals;
};

// The median of three, because the first one finds its memory cold.
Entry time_method(const std::string& method, const std::string& text, const std::string& file, int devices) {
  std::vector<double> seconds;
  Plan plan;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    plan = planner(method)(read_profile(text, file), {.stages = devices, .objective = "compute"});
    seconds.push_back(seconds_since(start));
  }
  return {.seconds = median(seconds), .slowest_s = plan.bottleneck_s, .proved = plan.proved_optimal()};
}

Row make_row(const std::string& model, int devices, const std::string& file) {
  Row row{.model = model, .devices = devices};
  const std::string text = read_file(file);
  for (const char* method : table_methods) try {
      row.entries.push_back(time_method(method, text, file, devices));
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      row.entries.emplace_back();
      row.refusals.push_back(
          fmt::format("{} on {} by {}: {}", model, counted(devices, "device"), method, error.what()));
    }
  return row;
}

std::string milliseconds_or_refused(const std::optional<Entry>& entry, double Entry::*value) {
  return entry ? fmt::format("{:.3g}", (*entry).*value * 1e3) : "-";
}

std::vector<std::string> header() {
  std::vector<std::string> cells = {"model", "devices"};
  for (const char* method : table_methods) cells.push_back(fmt::format("{}, ms", method));
  for (const char* method : table_methods) cells.push_back(fmt::format("{}: slowest stage, ms", method));
  cells.push_back("proved optimal");
  return cells;
}

std::vector<std::string> cells(const Row& row) {
  std::vector<std::string> cells = {row.model, std::to_string(row.devices)};
  for (const auto& entry : row.entries) cells.push_back(milliseconds_or_refused(entry, &Entry::seconds));
  for (const auto& entry : row.entries) cells.push_back(milliseconds_or_refused(entry, &Entry::slowest_s));
  const auto& exact = row.entries.back();
  cells.push_back(exact ? exact->proved ? "yes" : "no" : "-");
  return cells;
}

// The same for a terminal: units in a second line.
std::string text_table(const std::vector<Row>& rows) {
  std::vector<Table::Column> columns = {{"model", Table::Align::left}, {"devices"}};
  for (const char* method : table_methods) columns.push_back({fmt::format("{}\nms", method)});
  for (const char* method : table_methods) columns.push_back({fmt::format("{}\nslowest ms", method)});
  columns.push_back({"proved"});
  Table table(columns);
  for (const Row& row : rows) table.add(cells(row));
  return table.str();
}

std::string beside_the_paper(const std::vector<Row>& rows) {
  std::vector<double> ours;
  for (const Row& row : rows)
    if (row.entries.back()) ours.push_back(row.entries.back()->seconds);
  if (ours.empty()) return "antichain has no plan.";
  const auto [least, most] = std::ranges::minmax(ours);
  return fmt::format(
      "The paper's Table 1 gives {:g} to {:g} s for its method; antichain, exact, takes {:.4f} to {:.4f} s "
      "here, "
      "reading the profile included: between {:.1f} and {:.0f} times as fast, best beside best and worst "
      "beside worst.",
      paper_best_s, paper_worst_s, least, most, std::min(paper_best_s / least, paper_worst_s / most),
      std::max(paper_best_s / least, paper_worst_s / most));
}

std::string json_of(const std::vector<Row>& rows) {
  nlohmann::ordered_json json = {{"experiment", "table1"},
                                 {"paper_s", {{"least", paper_best_s}, {"most", paper_worst_s}}},
                                 {"rows", nlohmann::ordered_json::array()}};
  for (const Row& row : rows) {
    nlohmann::ordered_json of_row = {{"model", row.model}, {"devices", row.devices}};
    for (size_t m = 0; m < table_methods.size(); ++m)
      if (row.entries[m])
        of_row[table_methods[m]] = {{"planning_s", row.entries[m]->seconds},
                                    {"slowest_stage_s", row.entries[m]->slowest_s},
                                    {"proved_optimal", row.entries[m]->proved}};
    json["rows"].push_back(of_row);
  }
  return json.dump(2) + "\n";
}

void write_report(const ResultsFolder& out, const std::vector<Row>& rows, const std::string& source) {
  ReportDocument report("Table 1: partitioning time");
  report.paragraph(beside_the_paper(rows));
  report.paragraph(
      "Wall time of one core from the profile's text to the plan, the median of three; objective compute, "
      "one "
      "device a stage. " +
      source);
  std::vector<std::vector<std::string>> body;
  for (const Row& row : rows) body.push_back(cells(row));
  report.table(header(), body);
  for (const Row& row : rows)
    for (const std::string& refusal : row.refusals) report.paragraph("-: " + refusal);
  report.paragraph("Made by " + provenance_line());
  write_file(out.path() + "/table1.json", json_of(rows));
  write_file(out.path() + "/report.md", report.markdown());
  write_file(out.path() + "/report.html", report.html());
}

void run(Table1Options options) {
  if (const char* folder = std::getenv("ANTICHAIN_PIPEDREAM_PROFILES"); folder && options.profiles.empty())
    options.profiles = folder;
  const std::vector<std::string> models = parse_list(options.models, "--models", paper_models());
  const std::vector<int> devices = parse_counts(options.devices, "--devices", 1024);
  const ResultsFolder out(options.out, "table1", {{"profiles", options.profiles}}, own_command());
  const ProfileSource source{.given = options.profiles, .cache = out.path() + "/profiles"};
  StopSignals stop;
  std::vector<Row> rows;
  for (const std::string& model : models) {
    const std::string file = profile_file(source, model);
    for (const int count : devices) rows.push_back(make_row(model, count, file));
    if (StopSignals::requested()) throw Error("stopped", "start it again", ExitCode::stopped);
  }
  const std::string origin = options.profiles.empty() ? "Profiles measured here (cifar form)."
                                                      : "Profiles of " + options.profiles + ".";
  write_report(out, rows, origin);
  fmt::print("{}\n{}\n{}\nReport: {}/report.html\n", text_table(rows), beside_the_paper(rows), origin,
             out.path());
  for (const Row& row : rows)
    for (const std::string& refusal : row.refusals) fmt::print("-: {}\n", refusal);
}

}  // namespace

void add_experiment_table1(CLI::App& experiment) {
  auto options = std::make_shared<Table1Options>();
  CLI::App& command =
      add_command(experiment, "table1", "partitioning time of ten models by four methods, beside the paper's",
                  "antichain experiment table1 --profiles profiles");
  const auto option = [&](const char* name, std::string& value, const char* type, const char* group,
                          const char* what) {
    return command.add_option(name, value, what)->type_name(type)->group(group);
  };
  option(
      "--profiles", options->profiles, "FOLDER", "Networks",
      "MODEL.txt (PipeDream's) or MODEL.json of every model [$ANTICHAIN_PIPEDREAM_PROFILES, else measured]");
  option("--models", options->models, "LIST", "Networks", "with commas between them")->capture_default_str();
  option("--devices", options->devices, "LIST", "Networks", "numbers of devices")->capture_default_str();
  option("--out", options->out, "FOLDER", "Output", "for report.md, report.html and table1.json")
      ->capture_default_str();
  command.callback([options] { run(*options); });
}

}  // namespace antichain
