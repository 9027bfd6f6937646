#include "app/report/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/report/plan_figures.h"
#include "app/report/plan_report.h"
#include "partition/planners/planner.h"

namespace antichain {
namespace {

// Returns the task for one method.
PlanTask task_of(Method method, const PlanTask& asked) {
  PlanTask task = asked;
  task.method = method;
  Replicas& replicas = task.options.replicas;
  if (method == Method::data_parallel) {
    task.options.stages = asked.options.devices();
    replicas = {.automatic = true};
  } else if (method != Method::antichain && !(method == Method::pipedream && replicas.automatic)) {
    replicas = {};
  }
  return task;
}

// Returns the error without its hint, because each method has one line.
std::string in_short(const Error& error) {
  const std::string sentence = error.what();
  return sentence.substr(0, sentence.find(": "));
}

std::pair<double, double> rank(const Plan& plan) { return {plan.objective_s(), plan.pace_s()}; }

}  // namespace

Comparison::Comparison(const Profile& profile, const PlanTask& asked) : profile_(profile), task_(asked) {
  const Replicas& replicas = asked.options.replicas;
  for (const Method method : methods()) {
    Row row{.task = task_of(method, asked)};
    row.asked = method == Method::antichain || replicas.automatic ||
                (replicas.off() && method != Method::data_parallel);
    try {
      row.plan = plan_here(profile, row.task);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      row.refusal = error;
    }
    rows_.push_back(std::move(row));
  }
  if (std::ranges::none_of(rows_, [](const Row& row) { return row.plan.has_value(); })) plan(asked.method);
}

const Comparison::Row& Comparison::row(Method method) const {
  return *std::ranges::find_if(rows_, [&](const Row& r) { return r.task.method == method; });
}

const Plan& Comparison::plan(Method method) const {
  const Row& row = this->row(method);
  if (row.refusal) throw *row.refusal;
  return *row.plan;
}

const Comparison::Row* Comparison::best() const {
  const Row* best = nullptr;
  for (const Row& row : rows_)
    if (row.plan && row.asked && (!best || rank(*row.plan) < rank(*best->plan))) best = &row;
  return best;
}

// The gap is measured from the exact method's bound, which is the highest one proved, where that bound holds.
// Otherwise it is measured from the plan's own bound.
double Comparison::gap(const Row& row) const {
  const Row& exact = this->row(Method::antichain);
  const double bound_s = (row.asked && exact.plan ? exact : row).plan->lower_bound_s;
  if (bound_s <= 0) return 0;
  const double gap = row.plan->objective_s() / bound_s - 1;
  return std::abs(gap) < 1e-9 ? 0 : gap;  // this much is the rounding of milliseconds
}

std::vector<std::string> Comparison::cells(const Row& row) const {
  const std::string name = (&row == best() ? "* " : "  ") + std::string(name_of(row.task.method));
  if (!row.plan) return {name, "-", "-", "-", "-", "-", "-", "-", "-", "-"};
  const Plan& plan = *row.plan;
  const PlanFigures all = figures(plan, profile_, row.task.options);
  return {name,
          stages_in_short(plan),
          compact_ms(plan.planning_s),
          compact_ms(all.slowest_s()),
          fmt::format("{:.2f}", all.imbalance()),
          compact_mebibytes(all.boundary_bytes()),
          compact_mebibytes(all.memory_bytes()),
          compact_ms(plan.step_s),
          plan.step_s > 0 ? fmt::format("{:.2f}", speedup(plan.pace_s(), profile_, row.task.options)) : "-",
          compact(gap(row) * 100)};
}

// Explains the table's columns and marks where they are not obvious.
std::string Comparison::legend() const {
  const Row &exact = row(Method::antichain), &replicated = row(Method::data_parallel);
  std::string text;
  const auto explain = [&](const std::string& sentence) { text += hanging("", 0, sentence); };
  if (exact.plan)
    explain(fmt::format("gap: above {} ms, the lower bound of {} that antichain proved{}",
                        milliseconds(exact.plan->lower_bound_s), name_of(*exact.plan->objective),
                        exact.plan->proved_optimal() ? ", and met" : ""));
  if (best())
    explain(fmt::format("*: the best by {}, among equals by the step", name_of(task_.options.objective)));
  const auto replicates = [](const Row& row) { return row.plan && has_replicas(*row.plan); };
  if (std::ranges::any_of(rows_, replicates)) explain("stages: 2+3x1 is a stage of 2 devices, then 3 of 1");
  if (replicated.plan && !replicated.asked)
    explain("data-parallel makes every device a replica and is not ranked; its gap is above its own bound");
  return text;
}

// Lists the memory that each stage needs on a device; for long pipelines, only the first stages.
std::string Comparison::memory_table() const {
  constexpr size_t most_columns = 8;
  size_t stages = 0;
  for (const Row& row : rows_)
    if (row.plan) stages = std::max(stages, row.plan->stages.size());
  std::vector<Table::Column> columns = {{"  MiB per stage", Table::Align::left}};
  for (size_t s = 0; s < std::min(stages, most_columns); ++s) columns.push_back({std::to_string(s)});
  if (stages > most_columns) columns.push_back({"largest of the rest"});
  Table table(columns);
  for (const Row& row : rows_) {
    if (!row.plan) continue;
    std::vector<std::string> cells(columns.size(), "-");
    cells[0] = fmt::format("  {}", name_of(row.task.method));
    int64_t rest = 0;
    for (size_t s = 0; s < row.plan->stages.size(); ++s) {
      const int64_t bytes = row.plan->stages[s].memory_bytes;
      if (s >= most_columns) rest = std::max(rest, bytes);
      const size_t column = std::min(s, most_columns) + 1;
      cells[column] = compact_mebibytes(s >= most_columns ? rest : bytes);
    }
    table.add(cells);
  }
  return "\n" + table.str() + "\n";
}

std::string Comparison::str() const {
  using enum Table::Align;
  Table table({{"  method", left},
               {"stages"},
               {"planning\nms"},
               {"slowest\nms"},
               {"imbalance\nmax/mean"},
               {"boundary\nMiB"},
               {"memory\nmax MiB"},
               {"step\nms"},
               {"speedup"},
               {"gap\n%"}});
  for (const Row& row : rows_) table.add(cells(row), &row == best() ? Style::good : Style::plain);
  std::string text =
      fmt::format("{}\n{}\n{}\n",
                  styled(Style::heading, fmt::format("Methods for {} on {}", subject(profile_),
                                                     counted(task_.options.devices(), "device"))),
                  describe(task_), table.str());
  text += legend();
  text += memory_table();
  for (const Row& row : rows_)
    if (row.refusal)
      text += hanging(std::string(name_of(row.task.method)), 15, "no plan: " + in_short(*row.refusal));
  return text;
}

}  // namespace antichain
