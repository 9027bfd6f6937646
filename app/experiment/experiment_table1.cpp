// antichain experiment table1 repeats the publication's Table 1, which says how long partitioning takes, and
// prints both side by side.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "app/cli/child_process.h"
#include "app/cli/number_text.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/experiment/experiment_commands.h"
#include "app/experiment/experiment_networks.h"
#include "app/experiment/table1_report.h"
#include "app/job/experiment_record.h"
#include "framework/error.h"
#include "framework/json.h"
#include "partition/planners/planner.h"
#include "partition/profile/read_profile.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

struct Table1Options {
  std::string profiles, models = "all", devices = "4,8", out = "antichain-table1";
};

// Takes the median of three runs, because the first one finds its memory cold.
Table1Entry time_method(Method method, const std::string& text, const std::string& file, int devices) {
  std::vector<double> seconds;
  Plan plan;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    plan = planner(method)(read_profile(text, file), {.stages = devices, .objective = Objective::compute});
    seconds.push_back(seconds_since(start));
  }
  return {.seconds = median(seconds), .slowest_s = plan.bottleneck_s, .proved = plan.proved_optimal()};
}

Table1Row make_row(const std::string& model, int devices, const std::string& file) {
  Table1Row row{.model = model, .devices = devices};
  const std::string text = read_file(file);
  for (const Method method : table1_methods) try {
      row.entries.push_back(time_method(method, text, file, devices));
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      row.entries.emplace_back();
      row.refusals.push_back(fmt::format("{} on {} by {}: {}", model, counted(devices, "device"),
                                         name_of(method), error.what()));
    }
  return row;
}

void write_report(const ResultsFolder& out, const std::vector<Table1Row>& rows, const std::string& source) {
  const ReportDocument report = table1_report(rows, source);
  write_file(out.path() + "/table1.json", table1_json(rows));
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
  std::vector<Table1Row> rows;
  for (const std::string& model : models) {
    const std::string file = profile_file(source, model);
    for (const int count : devices) rows.push_back(make_row(model, count, file));
    if (StopSignals::requested()) throw Error("stopped", "start it again", ExitCode::stopped);
  }
  const std::string origin = options.profiles.empty() ? "Profiles measured here (cifar form)."
                                                      : "Profiles of " + options.profiles + ".";
  write_report(out, rows, origin);
  begin_answer();
  fmt::print("{}\nReport: {}/report.html\n", table1_text(rows, origin), out.path());
}

}  // namespace

void add_experiment_table1(CLI::App& experiment) {
  auto options = std::make_shared<Table1Options>();
  CLI::App& command = add_command(experiment, "table1",
                                  "partitioning time of ten models by four methods, beside the publication's",
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
