#include "app/report/schedule_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/obtain/schedule.h"
#include "app/report/plan_figures.h"
#include "app/report/plan_report.h"
#include "framework/error.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

// --chunks is for the policies that leave it open, and --in-flight for `auto`.
PlanningOptions options_for(const std::string& schedule, PlanningOptions options) {
  const bool planned = schedule == planned_order;
  if (planned || policy(schedule).placement != Placement::loop) options.chunks = 0;
  if (!planned) options.in_flight.clear();
  return options;
}

int64_t messages_of(const Schedule& schedule) {
  int64_t sends = 0;
  for (const std::vector<Action>& actions : schedule.ranks)
    sends += std::ranges::count(actions, Verb::send, &Action::verb);
  return sends;
}

struct Row {
  PlanTask task;
  ShownSchedule shown;
};

Row row_of(const GivenFiles& given, const Profile& profile, const PlanTask& task) {
  const Plan plan = obtain_plan(given, profile, task);
  const Schedule schedule = obtain_schedule(given, task, profile, plan);
  const Timeline timeline = simulate(schedule, plan, profile, task.options.cluster, task.options.steps);
  return {task, shown(task, plan, schedule, timeline, profile)};
}

std::string table_of(const std::vector<Row>& rows) {
  std::vector<Table::Column> columns = {{"  schedule", Table::Align::left}};
  for (const auto& [header, cell] : rows.front().shown.figures) columns.push_back({header});
  Table table(columns);
  for (const auto& [task, shown] : rows) {
    std::vector<std::string> cells = {fmt::format("{} {}", shown.best ? "*" : " ", shown.name)};
    for (const auto& [header, cell] : shown.figures) cells.push_back(cell);
    table.add(cells, shown.best ? Style::good : Style::plain);
  }
  return table.str();
}

}  // namespace

ShownSchedule shown(const PlanTask& task, const Plan& plan, const Schedule& schedule,
                    const Timeline& timeline, const Profile& profile) {
  std::vector<MemoryShares> memory = memory_shares(schedule, plan, profile);
  const int64_t most = std::ranges::max_element(memory, {}, &MemoryShares::bytes)->bytes();
  return {.name = task.schedule,
          .figures = {{"stages", std::to_string(plan.stages.size())},
                      {"step\nms", compact_ms(timeline.step_s)},
                      {"period\nms", compact_ms(timeline.period_s)},
                      {"span\nms", compact_ms(timeline.span_s())},
                      {"bubble\n%", percent(timeline.bubble_fraction())},
                      {"speedup", fmt::format("{:.2f}", speedup(timeline.period_s, profile, task.options))},
                      {"memory\nMiB", compact_mebibytes(most)},
                      {"messages", std::to_string(messages_of(schedule))}},
          .plan = plan,
          .cluster = task.options.cluster,
          .timeline = timeline,
          .memory = std::move(memory)};
}

ScheduleComparison compare_schedules(const PlanningOptions& planning, const GivenFiles& given,
                                     const Profile& profile, int microbatches, int ranks) {
  std::vector<Row> rows;
  std::vector<std::pair<std::string, std::string>> refusals;
  std::optional<Error> refusal;
  std::vector<std::string> schedules = synchronous_policies();
  schedules.emplace_back(planned_order);
  for (const std::string& schedule : schedules) {
    try {
      const PlanningOptions options = options_for(schedule, planning);
      rows.push_back(row_of(given, profile,
                            plan_task(options, given, profile, {.schedule = schedule}, microbatches, ranks)));
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      refusal = error;
      refusals.emplace_back(schedule, error.what());
    }
  }
  if (rows.empty()) throw Error(*refusal);
  const auto period_s = [](const Row& row) { return row.shown.timeline.period_s; };
  std::ranges::min_element(rows, {}, period_s)->shown.best = true;
  const std::string heading = fmt::format(
      "Schedules for {} on {}{}", subject(profile), counted(rows.front().shown.plan.ranks(), "device"),
      planning.plan_file.empty() ? "" : ", with the plan " + planning.plan_file);
  const auto split =
      std::ranges::find_if(rows, [](const Row& row) { return !row.task.backward_split.empty(); });
  ScheduleComparison comparison{
      .notes = {"*: the shortest period, which is from a step to the next",
                "span: the longest time from a rank's first action to its last; memory: the peak of the "
                "fullest rank; messages: in one step"},
      .link = rows.front().task.link};
  comparison.table = fmt::format("{}\n{}\nLink {}\n{}\n{}\n", styled(Style::heading, heading),
                                 counted(microbatches, "micro-batch", "micro-batches"), comparison.link,
                                 split == rows.end() ? "" : split->task.backward_split, table_of(rows));
  for (const std::string& note : comparison.notes) comparison.table += hanging("", 0, note);
  for (const auto& [schedule, why] : refusals) {
    comparison.table += hanging(schedule, 15, why);
    comparison.notes.push_back(schedule + ": " + why);
  }
  for (Row& row : rows) comparison.schedules.push_back(std::move(row.shown));
  return comparison;
}

}  // namespace antichain
