#include "app/report/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/job/memory_table.h"
#include "app/report/plan_figures.h"
#include "framework/printable.h"
#include "pipeline/planning/order_bound.h"
#include "pipeline/program/memory_shares.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr size_t label_width = 17;

std::string labelled(const std::string& label, const std::string& text) {
  return hanging(label, label_width, text);
}

std::string short_mebibytes(int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f}", double(bytes) / (1 << 20));
}

// Shown omits empty columns: devices that are the ranks, and unlimited memory.
struct Shown {
  bool devices = false, limits = false, shares = false;
  Shown(const Plan& plan, const PlanFigures& all) {
    for (size_t s = 0; s < plan.stages.size(); ++s) {
      const PlanStage& stage = plan.stages[s];
      const StagePrice& sum = all.stages[s];
      devices |= !stage.devices.empty() && stage.devices != stage.ranks;
      limits |= sum.limit_bytes > 0;
      shares |= sum.devices > 1;
    }
  }
};

Table stage_table(const Plan& plan, const Profile& profile, const PlanFigures& all, const Shown& shown) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"stage"}, {"rank"}};
  if (shown.devices) columns.push_back({"device"});
  for (const Table::Column& column : std::vector<Table::Column>{{"nodes", left, Table::Role::below},
                                                                {"forward\nms"},
                                                                {"backward\nms"},
                                                                {"compute\nms"},
                                                                {"boundary\nMiB"},
                                                                {"memory\nMiB"}})
    columns.push_back(column);
  if (shown.limits) columns.push_back({"of\nMiB"});
  Table table(columns);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const StagePrice& sum = all.stages[s];
    std::vector<std::string> row = {std::to_string(s), ranges(stage.ranks)};
    if (shown.devices) row.push_back(ranges(stage.devices.empty() ? stage.ranks : stage.devices));
    for (const std::string& cell : {layers_in_short(stage, profile), milliseconds(sum.forward_s),
                                    milliseconds(sum.backward_s), milliseconds(double(sum.stage_ns) * 1e-9),
                                    short_mebibytes(sum.boundary.bytes), short_mebibytes(sum.memory_bytes)})
      row.push_back(cell);
    if (shown.limits) row.push_back(short_mebibytes(sum.limit_bytes));
    table.add(row);
  }
  return table;
}

// Names the quantity that the bound applies to.
std::string slowest(const Plan& plan, const PlanFigures& all) {
  const double stage_s = all.slowest_s();
  std::string text =
      fmt::format("{} ms a micro-batch, {:.2f} times the mean", milliseconds(stage_s), all.imbalance());
  if (plan.objective && of_loads(*plan.objective))
    text += fmt::format("; the largest load is {} ms", milliseconds(plan.bottleneck_s));
  if (plan.objective == Objective::compute_or_transfer && plan.bottleneck_s > stage_s * (1 + 1e-9))
    text += fmt::format("; the slowest boundary takes {} ms", milliseconds(plan.bottleneck_s));
  return text;
}

std::string bound(const Plan& plan, const PlanTask& task) {
  if (plan.lower_bound_s == 0)
    return task.given ? "none: the plan's file has none for this profile, cluster, objective and schedule"
                      : "none is known";
  const char* what = plan.objective == Objective::makespan  ? "a step"
                     : plan.objective == Objective::period  ? "the period, from a step to the next"
                     : plan.objective == Objective::compute ? "the slowest stage"
                     : of_loads(*plan.objective)            ? "the largest load"
                                                            : "the slowest stage or boundary";
  return fmt::format("{} ms for {}", milliseconds(plan.lower_bound_s), what);
}

std::string gap(const Plan& plan) {
  if (plan.lower_bound_s == 0) return "not known";
  return fmt::format("{:.2f} %: {}", plan.gap() * 100,
                     plan.proved_optimal() ? "proved optimal" : "not proved optimal");
}

// The more stages there are, the less even they are.
std::string uneven_chunks(const Plan& plan, const Profile& profile, const PlanTask& task) {
  if (!has_several_stages_a_rank(plan) || plan.step_s <= 0 || task.policy.name != task.schedule) return "";
  const double even_s = even_pace(profile, plan, task.policy, task.options.microbatches, task.options.cluster,
                                  task.options.steps)
                            .period_s;
  return labelled("Uneven stages", fmt::format("cost {} ms of it: with equal times it would take {} ms",
                                               milliseconds(plan.pace_s() - even_s), milliseconds(even_s)));
}

}  // namespace

std::string subject(const Profile& profile) {
  const std::string model = printable(profile.model);
  return profile.microbatch == 0 ? model
                                 : fmt::format("{} in micro-batches of {}", model, profile.microbatch);
}

std::string layers_in_short(const PlanStage& stage, const Profile& profile) {
  const std::string &first = profile.nodes[size_t(stage.nodes.front())].name,
                    &last = profile.nodes[size_t(stage.nodes.back())].name;
  return fmt::format("{}: {}{}", stage.nodes.size(), first, stage.nodes.size() > 1 ? " to " + last : "");
}

std::string device_in_short(int device, const Cluster& cluster) {
  const Device& it = cluster.device(device);
  const auto differs = [&](auto field) {
    return std::ranges::any_of(cluster.devices,
                               [&](const Device& other) { return other.*field != it.*field; });
  };
  std::string text = fmt::format("device {}", device);
  if (it.profile >= 0) text += ", " + printable(cluster.profiles[size_t(it.profile)].name);
  if (differs(&Device::speed)) text += fmt::format(", speed {}", it.speed);
  if (differs(&Device::memory_bytes))
    text += it.memory_bytes > 0 ? fmt::format(", {:.1f} GiB", double(it.memory_bytes) / (1 << 30))
                                : ", any memory";
  if (differs(&Device::node)) text += fmt::format(", node {}", it.node);
  return text;
}

std::string one_device(const Cluster& cluster) {
  const auto differs = [&](const Device& d) {
    return d.speed != cluster.devices[0].speed || d.profile != cluster.devices[0].profile;
  };
  return std::ranges::any_of(cluster.devices, differs) ? "the fastest device" : "one device";
}

std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

std::string describe(const PlanTask& task) {
  const Objective objective = task.choice.objective(task.options);
  return fmt::format("Objective {}{}, {} under {}\nLink {}\n", name_of(objective),
                     objective != task.options.objective ? " (steps overlap)" : "",
                     counted(task.options.microbatches, "micro-batch", "micro-batches"),
                     task.schedule == planned_order ? planned_order : task.policy.name, task.link) +
         task.backward_split;
}

std::string describe(const Plan& plan, const Profile& profile, const PlanTask& task) {
  const PlanFigures all = figures(plan, profile, task.options);
  const Shown shown(plan, all);
  const std::string heading =
      fmt::format("Plan for {}: {}, method {}", subject(profile),
                  counted(int64_t(plan.stages.size()), "stage"), printable(plan.method));
  std::string text = styled(Style::heading, heading) + "\n" + describe(task) + "\n" +
                     stage_table(plan, profile, all, shown).str();
  if (shown.shares)
    text += hanging("", 2,
                    "(compute: of each replica for one micro-batch of all, with its part of the all-reduce)");
  if (plan.shard_optimiser)
    text += hanging("", 2,
                    "(memory: each replica holds and updates its part of what the optimiser keeps: ZeRO-1)");
  text += "\n" +
          labelled(has_several_stages_a_rank(plan) ? "Slowest rank" : "Slowest stage", slowest(plan, all)) +
          labelled("Lower bound", bound(plan, task)) + labelled("Gap", gap(plan));
  if (plan.states > 0)
    text += labelled("Search", fmt::format("{} in {} ms", counted(plan.states, "antichain"),
                                           milliseconds(plan.planning_s)));
  return text;
}

std::string describe_order(const PlanTask& task, const Profile& profile, const Plan& plan, double pace_s) {
  const OrderEstimate estimate(profile, plan, task.options.cluster, task.options.microbatches);
  const std::vector<int> limits_of_ranks = task.choice.limits(profile, plan, task.options);
  std::vector<int> by_rank(limits_of_ranks.size());  // as the estimate numbers ranks
  for (int s = 0; s < estimate.stages(); ++s)
    by_rank[size_t(estimate.rank_of(s))] = limits_of_ranks[size_t(plan.stages[size_t(s)].ranks.front())];
  const double bound_s = order_bound_s(estimate, by_rank, task.options.steps);
  const bool equal = std::ranges::count(by_rank, by_rank.front()) == int64_t(by_rank.size());
  const std::string limits =
      fmt::format("of this plan with at most {} micro-batches in flight",
                  equal ? fmt::format("{}", by_rank.front()) : fmt::format("{}", fmt::join(by_rank, ", ")));
  const char* what = task.options.steps == Steps::overlapped ? "period" : "step";
  if (pace_s <= bound_s * (1 + 1e-9))
    return labelled(
        "Order", fmt::format("searched, its {} proved optimal: no order {} has a shorter one", what, limits));
  return labelled("Order", fmt::format("searched, its {} at most {:.2f} % longer than the shortest {}", what,
                                       (pace_s / bound_s - 1) * 100, limits));
}

std::string describe_faster(const Plan& plan, const Profile& profile, const PlanTask& task) {
  constexpr double most_seconds = 1, least_gain = 0.01;
  if (!is_training_policy(task.schedule) || task.policy.asynchronous() || task.given ||
      of_loads(task.options.objective) || plan.ranks() == 1 || has_replicas(plan) ||
      has_several_stages_a_rank(plan) || !task.choice.recomputation.none() ||
      task.method != Method::antichain)
    return "";
  const ScheduleChoice automatic{.name = std::string(planned_order)};
  const std::optional<CutAndOrder> found = automatic.glance(profile, task.options, most_seconds);
  if (!found || found->order.pace_s() > plan.pace_s() * (1 - least_gain)) return "";
  const auto gibibytes = [&](const Plan& of, const Schedule& schedule) {
    return double(std::ranges::max(peak_memory_bytes(schedule, of, profile))) / double(1 << 30);
  };
  const bool several = has_several_stages_a_rank(found->plan);
  return labelled(
      "Faster",
      fmt::format("--schedule auto: {} ms or less instead of {}{}, same bits, {:.3g} GiB on the fullest rank "
                  "instead of {:.3g}",
                  milliseconds(found->order.pace_s()), milliseconds(plan.pace_s()),
                  several ? ", two stages a rank" : "", gibibytes(found->plan, found->order.schedule),
                  gibibytes(plan, task.choice.schedule(profile, plan, task.options))));
}

std::string describe_memory(const Plan& plan, const Profile& profile, const Schedule& schedule) {
  return memory_table(memory_rows(memory_shares(schedule, plan, profile)));
}

std::string describe_step(const Plan& plan, const Profile& profile, const PlanTask& task) {
  std::string text = milliseconds(plan.step_s) + " ms";
  if (plan.pace_s() < plan.step_s)
    text += fmt::format("; steps overlap, {} ms from one to the next", milliseconds(plan.period_s));
  if (plan.step_s > 0)
    text += fmt::format(", speedup over {} {:.2f}", one_device(task.options.cluster),
                        speedup(plan.pace_s(), profile, task.options));
  return labelled("Predicted step", text) + uneven_chunks(plan, profile, task) +
         (task.schedule == planned_order ? describe_order(task, profile, plan, plan.pace_s()) : "");
}

}  // namespace antichain
