#include "app/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/table.h"

namespace antichain {
namespace {

struct StageFigures {
  double compute_s = 0;
  int64_t param_bytes = 0,
          sent_bytes = 0;  // sent: outputs of one micro-batch that later stages use, once per stage
};

StageFigures figures(const Plan& plan, const Profile& profile, int stage) {
  StageFigures sum;
  const auto consumers = profile.consumers();
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  for (const int node : plan.stages[size_t(stage)].nodes) {
    const NodeCost& cost = profile.nodes[size_t(node)].cost;
    sum.compute_s += cost.compute_s();
    sum.param_bytes += cost.param_bytes;
    std::vector<int> receivers;
    for (const int consumer : consumers[size_t(node)]) {
      if (stage_of[size_t(consumer)] > stage) receivers.push_back(stage_of[size_t(consumer)]);
    }
    std::ranges::sort(receivers);
    receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
    sum.sent_bytes += cost.output_bytes * int64_t(receivers.size());
  }
  return sum;
}

// Of a plan that was searched for: how good it is proved to be. A plan by hand, or edited, says nothing.
std::string search(const Plan& plan) {
  if (plan.states == 0) return "";
  return fmt::format("Slowest stage {} ms a micro-batch, lower bound {} ms; {} searched in {} ms\n",
                     milliseconds(plan.bottleneck_s), milliseconds(plan.lower_bound_s),
                     counted(plan.states, "antichain"), milliseconds(plan.planning_s));
}

}  // namespace

std::string describe(const Plan& plan, const Profile& profile) {
  using enum Table::Align;
  Table table({{"stage"},
               {"rank"},
               {"nodes"},
               {"first node", left, 24},
               {"last node", left, 24},
               {"weights\nMiB"},
               {"compute\nms"},
               {"sends\nMiB"}});
  for (int s = 0; s < int(plan.stages.size()); ++s) {
    const PlanStage& stage = plan.stages[size_t(s)];
    const StageFigures sum = figures(plan, profile, s);
    table.add({std::to_string(s), fmt::format("{}", fmt::join(stage.ranks, ",")),
               std::to_string(stage.nodes.size()), profile.nodes[size_t(stage.nodes.front())].name,
               profile.nodes[size_t(stage.nodes.back())].name, mebibytes(sum.param_bytes),
               milliseconds(sum.compute_s), mebibytes_or_dash(sum.sent_bytes)});
  }
  return fmt::format("Plan for {} in micro-batches of {}: {}, method {}\n{}{}", plan.model,
                     profile.microbatch, counted(int64_t(plan.stages.size()), "stage"), plan.method,
                     table.str(), search(plan));
}

std::string describe(const Timeline& timeline, const Plan& plan, const Profile& profile,
                     const Schedule& schedule) {
  const double alone_s = one_device_step_s(profile, schedule.microbatches);
  const double images = double(profile.microbatch) * schedule.microbatches;
  const std::vector<int64_t> memory = peak_memory_bytes(schedule, plan, profile);
  Table table({{"stage"}, {"rank"}, {"busy\nms"}, {"busy\n%"}, {"peak memory\nMiB"}});
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    for (const int rank : plan.stages[s].ranks) {
      const double busy_s = timeline.busy_s[size_t(rank)];
      table.add({std::to_string(s), std::to_string(rank), milliseconds(busy_s),
                 percent(busy_s / timeline.step_s), mebibytes(memory[size_t(rank)])});
    }
  }
  return fmt::format(
      "Predicted step of {}: {} ms, {:.1f} images/s\nBubble share {} %, speedup over one device {:.2f}\n{}",
      counted(schedule.microbatches, "micro-batch", "micro-batches"), milliseconds(timeline.step_s),
      images / timeline.step_s, percent(timeline.bubble_share()), alone_s / timeline.step_s, table.str());
}

std::string simulation_json(const Timeline& timeline, const Plan& plan, const Profile& profile,
                            const Schedule& schedule) {
  const nlohmann::ordered_json json = {
      {"model", profile.model},
      {"microbatch", profile.microbatch},
      {"microbatches", schedule.microbatches},
      {"ranks", schedule.ranks.size()},
      {"step_s", timeline.step_s},
      {"bubble_share", timeline.bubble_share()},
      {"one_device_step_s", one_device_step_s(profile, schedule.microbatches)},
      {"busy_s", timeline.busy_s},
      {"peak_memory_bytes", peak_memory_bytes(schedule, plan, profile)},
  };
  return json.dump(2) + "\n";
}

}  // namespace antichain
