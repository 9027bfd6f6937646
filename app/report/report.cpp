#include "app/report/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/report/measures.h"
#include "app/report/plan_report.h"
#include "pipeline/program/memory_shares.h"

namespace antichain {

int grid_width(int asked) { return asked > 0 ? asked : int(text_columns()); }

std::string describe(const Timeline& timeline, const Plan& plan, const Profile& profile,
                     const Schedule& schedule, const PlanTask& task) {
  Table table({{"stage"}, {"rank"}, {"busy\nms"}, {"busy\n%"}});
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    for (const int rank : plan.stages[s].ranks) {
      const std::vector<int> stages = stages_of_rank(plan, rank);
      if (stages.front() != int(s)) continue;
      const double busy_s = timeline.busy_s[size_t(rank)];
      table.add(
          {ranges(stages), std::to_string(rank), milliseconds(busy_s), percent(busy_s / timeline.period_s)});
    }
  }
  const double images = double(profile.microbatch) * schedule.microbatches_of_step();
  const std::string rate =
      images > 0 ? fmt::format(", {:.1f} {}/s", images / timeline.period_s, samples_of(profile)) : "";
  const std::string order =
      task.schedule == planned_order ? describe_order(task, profile, plan, timeline.period_s) : "";
  const std::string period =
      timeline.period_s < timeline.step_s
          ? fmt::format("; steps overlap, {} ms from one to the next", milliseconds(timeline.period_s))
          : "";
  return fmt::format("Predicted step of {}: {} ms{}{}\n{}Bubble share {} %, speedup over {} {:.2f}\n\n{}\n{}",
                     counted(schedule.microbatches_of_step(), "micro-batch", "micro-batches"),
                     milliseconds(timeline.step_s), period, rate, order, percent(timeline.bubble_fraction()),
                     one_device(task.options.cluster), speedup(timeline.period_s, profile, task.options),
                     table.str(), describe_memory(plan, profile, schedule));
}

std::string simulation_json(const Timeline& timeline, const Plan& plan, const Profile& profile,
                            const Schedule& schedule, const PlanFigures& figures, double reading_s) {
  std::vector<double> first_begin_s, last_end_s;
  for (const Span& span : timeline.spans()) {
    first_begin_s.push_back(span.first_begin_s);
    last_end_s.push_back(span.last_end_s);
  }
  std::vector<int64_t> peak_bytes;
  nlohmann::ordered_json memory = nlohmann::ordered_json::array();
  for (const MemoryShares& shares : memory_shares(schedule, plan, profile)) {
    peak_bytes.push_back(shares.bytes());
    memory.push_back({{"weights_bytes", shares.weights},
                      {"gradients_bytes", shares.gradients},
                      {"optimiser_bytes", shares.optimiser},
                      {"kept_bytes", shares.kept},
                      {"working_bytes", shares.working},
                      {"messages_bytes", shares.messages},
                      {"scratch_bytes", shares.scratch}});
    if (shares.versions > 0) memory.back()["versions_bytes"] = shares.versions;
  }
  const nlohmann::ordered_json json = {
      {"model", profile.model},
      {"microbatch", profile.microbatch},
      {"microbatches", schedule.microbatches_of_step()},
      {"ranks", schedule.ranks.size()},
      {"step_s", timeline.step_s},
      {"period_s", timeline.period_s},
      {"span_s", timeline.span_s()},
      {"bubble_share", timeline.bubble_fraction()},
      {"one_device_step_s", one_device_step_s(profile, schedule.microbatches_of_step())},
      {"first_begin_s", first_begin_s},
      {"last_end_s", last_end_s},
      {"busy_s", timeline.busy_s},
      {"in_flight", peak_in_flight(schedule)},
      {"peak_memory_bytes", peak_bytes},
      {"memory", memory},
      {"stages", stages_in_short(plan)},
      {"slowest_s", figures.slowest_s()},
      {"imbalance", figures.imbalance()},
      {"boundary_bytes", figures.boundary_bytes()},
      {"reading_s", reading_s},
      {"planning_s", plan.planning_s},
  };
  return json.dump(2) + "\n";
}

}  // namespace antichain
