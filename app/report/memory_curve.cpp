#include "app/report/memory_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/report/plan_report.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/search_again.h"
#include "pipeline/program/memory_shares.h"

namespace antichain {
namespace {

constexpr int points = 12, rows = 10;

PlanTask within(const PlanTask& task, int64_t memory_bytes) {
  PlanTask limited = task;
  limited.options = within(task.options, memory_bytes);
  return limited;
}

CurvePoint point_of(Plan plan, const Profile& profile, const PlanTask& limited) {
  const Schedule schedule = limited.choice.schedule(profile, plan, limited.options);
  const int64_t bytes = std::ranges::max(peak_memory_bytes(schedule, plan, profile));
  return {bytes, std::move(plan)};
}

int64_t fullest_bytes(const Plan& plan) {
  int64_t most = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank) most = std::max(most, memory_of_rank(plan, rank));
  return most;
}

double recomputed_s(const Plan& plan, const Profile& profile, const Cluster& cluster) {
  double seconds = 0;
  for (const PlanStage& stage : plan.stages) {
    const Device& device = cluster.device(plan.device_of(stage.ranks.front()));
    const Profile& times = cluster.profile(device.profile, profile);
    for (const int n : stage.recomputed) seconds += times.nodes[size_t(n)].cost.forward_s / device.speed;
  }
  return seconds;
}

// Each row is a range of times, and each mark a limit and its step.
std::string draw(const std::vector<CurvePoint>& curve, int width) {
  const double least_s = curve.back().plan.objective_s();
  double most_s = least_s;
  for (const CurvePoint& point : curve) most_s = std::max(most_s, point.plan.objective_s());
  const auto [least, most] = std::ranges::minmax(curve, {}, &CurvePoint::memory_bytes);
  const int64_t first_bytes = least.memory_bytes, last_bytes = most.memory_bytes;
  const int columns = std::max(20, width - 14);
  std::vector<std::string> grid(rows, std::string(size_t(columns), ' '));
  for (const CurvePoint& point : curve) {
    const double above = most_s > least_s ? (point.plan.objective_s() - least_s) / (most_s - least_s) : 0;
    const double along =
        double(point.memory_bytes - first_bytes) / double(std::max<int64_t>(1, last_bytes - first_bytes));
    grid[size_t(std::lround((1 - above) * (rows - 1)))][size_t(std::lround(along * (columns - 1)))] = '*';
  }
  std::string text;
  for (int row = 0; row < rows; ++row) {
    const std::string label = row == 0 ? milliseconds(most_s) : row == rows - 1 ? milliseconds(least_s) : "";
    std::string line = fmt::format("{:>10} |{}", label, grid[size_t(row)]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string first = mebibytes(first_bytes), last = mebibytes(last_bytes);
  return text + fmt::format("{:>10} +{}\n{:12}{}{:>{}}\n", "ms", std::string(size_t(columns), '-'), "", first,
                            last + " MiB", std::max(1, columns - int(first.size())));
}

}  // namespace

std::vector<CurvePoint> memory_curve(const Profile& profile, const PlanTask& task) {
  PlanTask asked = task;
  asked.options.recompute = true;
  asked.choice.recomputation = {.automatic = true};
  asked.choice.by_formula = true;
  Plan free = plan_here(profile, within(asked, 0));
  const int64_t most = fullest_bytes(free);
  const PlanTask limited = within(asked, most);
  const PlanOptions options = on_so_many(limited.options, limited.policy, limited.options.devices());
  const int64_t least = std::min(most, least_by_formula(profile, options));
  std::vector<CurvePoint> curve;
  for (int i = 0; i + 1 < points; ++i) {
    const PlanTask point = within(asked, least + int64_t(double(most - least) * i / (points - 1)));
    curve.push_back(point_of(plan_here(profile, point), profile, point));
  }
  curve.push_back(point_of(std::move(free), profile, within(asked, 0)));
  return curve;
}

std::string describe(const std::vector<CurvePoint>& curve, const Profile& profile, const PlanTask& task,
                     int width) {
  const double free_s = curve.back().plan.objective_s();
  Table table({{"memory\nMiB"}, {"step\nms"}, {"times\nthe last"}, {"recomputed\nms"}, {"gap\n%"}});
  int proved = 0;
  for (const CurvePoint& point : curve) {
    proved += point.plan.proved_optimal();
    table.add({mebibytes(point.memory_bytes), milliseconds(point.plan.objective_s()),
               fmt::format("{:.3f}", point.plan.objective_s() / free_s),
               milliseconds(recomputed_s(point.plan, profile, task.options.cluster)),
               point.plan.proved_optimal() ? "proved" : fmt::format("{:.2f}", point.plan.gap() * 100)});
  }
  return fmt::format("Steps of {} over the memory of each of {}\n{}\n{}{}\n\n{}", subject(profile),
                     counted(task.options.devices(), "device"), describe(task), table.str(),
                     fmt::format("  {} of {} points are proved optimal", proved, curve.size()),
                     draw(curve, width));
}

}  // namespace antichain
