#include "app/report/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/paths.h"

namespace antichain {
namespace {

using RunJson = nlohmann::json;

// These differ in every run and change no number.
const std::set<std::string> outputs = {"results",    "metrics", "trace", "json",
                                       "checkpoint", "resume",  "config"};

std::map<int64_t, double> read_losses(const std::string& file) {
  std::map<int64_t, double> losses;
  if (!exists(file)) return losses;
  std::istringstream in(read_file(file));
  for (std::string line; std::getline(in, line);) {
    const RunJson json = RunJson::parse(line, nullptr, false);  // the last one may have been cut short
    if (!json.is_object() || !json.contains("step") || !json.contains("loss")) continue;
    losses[json["step"].get<int64_t>()] =
        json["loss"].is_number() ? json["loss"].get<double>() : std::numeric_limits<double>::quiet_NaN();
  }
  return losses;
}

RunJson object_in(const RunJson& json, const char* name) {
  return json.contains(name) && json[name].is_object() ? json[name] : RunJson::object();
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string value_words(const RunJson& object, const std::string& name) {
  if (!object.contains(name) || object[name].is_null()) return "-";
  const RunJson& value = object[name];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string scaled(const RunJson& object, const char* name, double factor, const char* format) {
  if (!object.contains(name) || !object[name].is_number()) return "-";
  return fmt::format(fmt::runtime(format), object[name].get<double>() * factor);
}

int64_t last_step(const std::map<int64_t, double>& losses) {
  return losses.empty() ? 0 : losses.rbegin()->first;
}

}  // namespace

FinishedRun read_run(const std::string& folder) {
  const std::string file = folder + "/run.json", summary = folder + "/summary.json";
  if (!exists(file))
    throw Error(folder + " holds no run: it has no run.json", "name folders of antichain train --results");
  const RunJson run = parse_json(read_file(file), file);
  FinishedRun result{.folder = folder,
                     .settings = object_in(run, "settings"),
                     .start = RunJson::object(),
                     .summary = RunJson::object(),
                     .loss = read_losses(folder + "/metrics.jsonl")};
  if (run.contains("starts") && run["starts"].is_array() && !run["starts"].empty())
    result.start = run["starts"].back();
  if (exists(summary)) result.summary = parse_json(read_file(summary), summary);
  return result;
}

RunComparison::RunComparison(FinishedRun a, FinishedRun b) : a_(std::move(a)), b_(std::move(b)) {
  for (const auto& [step, loss] : a_.loss) {
    const auto other = b_.loss.find(step);
    if (other == b_.loss.end()) continue;
    ++common_;
    if (same_number(loss, other->second)) continue;
    if (first_different_ == 0) first_different_ = step;
    const double difference = std::abs(loss - other->second);
    largest_ = std::isnan(difference) ? difference : std::max(largest_, difference);
  }
}

bool RunComparison::same_states() const {
  return a_.summary.contains("state") && b_.summary.contains("state") &&
         a_.summary["state"] == b_.summary["state"];
}

bool RunComparison::equal() const {
  return common_ > 0 && first_different_ == 0 && a_.loss.size() == b_.loss.size() &&
         common_ == int64_t(a_.loss.size()) && same_states();
}

std::string RunComparison::verdict() const {
  if (equal())
    return fmt::format("the losses of all {} are equal, and so is the state at the end, {}",
                       counted(common_, "step"), value_words(a_.summary, "state"));
  if (common_ == 0) return "the runs have no step in common";
  if (first_different_ > 0)
    return fmt::format("the losses differ from step {} on, by at most {:.3g} in {}", first_different_,
                       largest_, counted(common_, "step"));
  if (a_.loss.size() != b_.loss.size())
    return fmt::format("the losses of the {} that both have are equal, but one has more",
                       counted(common_, "step"));
  if (a_.summary.empty() || b_.summary.empty())
    return fmt::format("the losses of {} are equal, but one of the runs has not ended",
                       counted(common_, "step"));
  return fmt::format("the losses of {} are equal, but the states at the end are not",
                     counted(common_, "step"));
}

std::vector<RunComparison::Line> RunComparison::settings() const {
  std::set<std::string> names;
  for (const RunJson* of : {&a_.settings, &b_.settings})
    for (const auto& [name, _] : of->items())
      if (!outputs.contains(name)) names.insert(name);
  std::vector<Line> lines;
  const auto add = [&](const RunJson& a, const RunJson& b, const std::string& name) {
    if (value_words(a, name) != value_words(b, name))
      lines.push_back({name, value_words(a, name), value_words(b, name)});
  };
  for (const std::string& name : names) add(a_.settings, b_.settings, name);
  for (const char* name : {"program", "revision", "libraries", "device", "threads", "plan_hash"})
    add(a_.start, b_.start, name);
  for (const char* name : {"data", "precision", "ranks"}) add(a_.summary, b_.summary, name);
  return lines;
}

std::vector<RunComparison::Line> RunComparison::results() const {
  const RunJson &a = a_.summary, &b = b_.summary;
  const auto line = [&](const char* what, const char* name, double factor, const char* format) {
    return Line{what, scaled(a, name, factor, format), scaled(b, name, factor, format)};
  };
  const bool text = a.contains("median_tokens_per_s") || b.contains("median_tokens_per_s");
  return {{"steps", std::to_string(last_step(a_.loss)), std::to_string(last_step(b_.loss))},
          line("last loss", "final_loss", 1, "{}"),
          line("test accuracy, %", "final_test_accuracy", 100, "{:.2f}"),
          {"state", value_words(a, "state"), value_words(b, "state")},
          line("predicted step, ms", "predicted_step_s", 1e3, "{:.2f}"),
          line("measured step, ms", "measured_step_s", 1e3, "{:.2f}"),
          text ? line("tokens/s", "median_tokens_per_s", 1, "{:.0f}")
               : line("images/s", "median_images_per_s", 1, "{:.1f}"),
          line("without a core, %", "starved_share", 100, "{:.1f}")};
}

std::string RunComparison::settings_table() const {
  const std::vector<Line> lines = settings();
  if (lines.empty()) return "Settings: none differ\n\n";
  using enum Table::Align;
  Table table({{"setting that differs", left}, {"A", left}, {"B", left}});
  for (const Line& line : lines) table.add({line.name, line.a, line.b});
  return table.str(80) + "\n";
}

std::string RunComparison::str() const {
  Table table({{"", Table::Align::left}, {"A"}, {"B"}, {"equal"}});
  for (const Line& line : results())
    table.add({line.name, line.a, line.b, line.a == "-" ? "-" : line.a == line.b ? "yes" : "no"});
  std::string losses = "none in common";
  if (common_ > 0)
    losses = first_different_ == 0
                 ? fmt::format("equal in all {} that both have", counted(common_, "step"))
                 : fmt::format("different from step {} on, by at most {:.3g}", first_different_, largest_);
  return fmt::format("A  {}\nB  {}\n\n{}{}\nLosses  {}\n", a_.folder, b_.folder, settings_table(),
                     table.str(80), losses);
}

std::string RunComparison::json() const {
  const auto as_json = [](const std::vector<Line>& lines) {
    nlohmann::ordered_json all = nlohmann::ordered_json::object();
    for (const Line& line : lines) all[line.name] = {{"a", line.a}, {"b", line.b}};
    return all;
  };
  const nlohmann::ordered_json json = {{"a", a_.folder},
                                       {"b", b_.folder},
                                       {"equal", equal()},
                                       {"settings_that_differ", as_json(settings())},
                                       {"results", as_json(results())},
                                       {"common_steps", common_},
                                       {"first_different_step", first_different_},
                                       {"largest_difference", largest_}};
  return json.dump(2) + "\n";
}

}  // namespace antichain
