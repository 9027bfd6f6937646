#include "app/report/schedule_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/obtain/plan_task.h"
#include "app/obtain/schedule.h"
#include "app/report/plan_figures.h"
#include "app/report/plan_report.h"
#include "framework/error.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

struct Row {
  PlanTask task;
  Plan plan;
  Timeline timeline;
  int64_t memory_bytes = 0;  // of the fullest rank
  int64_t messages = 0;
};

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

Row row_of(const Profile& profile, PlanTask task) {
  Row row{.task = std::move(task)};
  row.plan = make_plan(profile, row.task);
  const Schedule schedule = obtain_schedule({}, row.task, profile, row.plan);
  row.timeline = simulate(schedule, row.plan, profile, row.task.options.cluster, row.task.options.steps);
  const std::vector<int64_t> memory = peak_memory_bytes(schedule, row.plan, profile);
  row.memory_bytes = *std::ranges::max_element(memory);
  row.messages = messages_of(schedule);
  return row;
}

std::vector<std::string> cells(const Row& row, const Profile& profile, bool best) {
  return {fmt::format("{} {}", best ? "*" : " ", row.task.schedule),
          std::to_string(int(row.plan.stages.size())),
          compact_ms(row.timeline.step_s),
          compact_ms(row.timeline.period_s),
          compact_ms(row.timeline.span_s()),
          percent(row.timeline.bubble_fraction()),
          fmt::format("{:.2f}", speedup(row.timeline.period_s, profile, row.task.options)),
          compact_mebibytes(row.memory_bytes),
          std::to_string(row.messages)};
}

}  // namespace

ShownSchedule shown(const PlanTask& task, const Plan& plan, const Timeline& timeline,
                    const Profile& profile) {
  return {.name = task.schedule,
          .about = fmt::format("step {} ms, {}bubble {} %, speedup {:.2f}", milliseconds(timeline.step_s),
                               timeline.period_s < timeline.step_s
                                   ? fmt::format("period {} ms, ", milliseconds(timeline.period_s))
                                   : "",
                               percent(timeline.bubble_fraction()),
                               speedup(timeline.period_s, profile, task.options)),
          .plan = plan,
          .timeline = timeline};
}

ScheduleComparison compare_schedules(const PlanningOptions& planning, const GivenFiles& given,
                                     const Profile& profile, int microbatches, int ranks) {
  using enum Table::Align;
  std::vector<Row> rows;
  std::string refusals;
  std::optional<Error> refusal;
  std::vector<std::string> schedules = training_policies();
  schedules.emplace_back(planned_order);
  for (const std::string& schedule : schedules) {
    try {
      rows.push_back(row_of(profile, plan_task(options_for(schedule, planning), given, profile, schedule,
                                               microbatches, ranks)));
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      refusal = error;
      refusals += hanging(schedule, 15, error.what());
    }
  }
  if (rows.empty()) throw Error(*refusal);
  const auto best = std::ranges::min_element(rows, {}, [](const Row& row) { return row.timeline.period_s; });
  Table table({{"  schedule", left},
               {"stages"},
               {"step\nms"},
               {"period\nms"},
               {"span\nms"},
               {"bubble\n%"},
               {"speedup"},
               {"memory\nMiB"},
               {"messages"}});
  for (const Row& row : rows)
    table.add(cells(row, profile, &row == &*best), &row == &*best ? Style::good : Style::plain);
  const std::string heading =
      fmt::format("Schedules for {} on {}", subject(profile), counted(rows.front().plan.ranks(), "device"));
  const auto split =
      std::ranges::find_if(rows, [](const Row& row) { return !row.task.backward_split.empty(); });
  ScheduleComparison comparison;
  comparison.table =
      fmt::format("{}\n{}\nLink {}\n{}\n{}\n{}{}{}", styled(Style::heading, heading),
                  counted(microbatches, "micro-batch", "micro-batches"), rows.front().task.link,
                  split == rows.end() ? "" : split->task.backward_split, table.str(),
                  hanging("", 0, "*: the shortest period, which is from a step to the next"),
                  hanging("", 0,
                          "span: the longest time from a rank's first action to its last; memory: the "
                          "peak of the fullest rank; messages: in one step"),
                  refusals);
  for (Row& row : rows) comparison.schedules.push_back(shown(row.task, row.plan, row.timeline, profile));
  return comparison;
}

}  // namespace antichain
