#include "app/report/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/report/plan_figures.h"
#include "app/report/plan_report.h"
#include "framework/error.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

constexpr double few = 0.02;  // of a step: less does not bind
constexpr const char *without_limit = "memory without a limit", *without_waits = "messages that take no time";

struct Part {
  std::string what, binds;
  double seconds;
};

PlanTask over_free_links(PlanTask task) {
  task.options.cluster.within_node = task.options.cluster.between_nodes = {};
  return task;
}

std::vector<Part> parts(const Plan& plan, const Profile& profile, const PlanTask& task) {
  const PlanOptions free = over_free_links(task).options;
  const Schedule schedule = task.choice.schedule(profile, plan, task.options);
  const double free_s = simulate(schedule, plan, profile, free.cluster, free.steps).period_s;
  const PlanFigures all = figures(plan, profile, free);
  const double slowest_s = free.microbatches * all.slowest_s(), mean_s = slowest_s / all.imbalance();
  return {{"load, shared equally by the devices", "the load, whatever the plan", mean_s},
          {"uneven stages", "the cut, which is uneven", slowest_s - mean_s},
          {"fill, drain and updates", "the round trip of a micro-batch", free_s - slowest_s},
          {"messages", "the link", plan.pace_s() - free_s}};
}

struct Change {
  std::string what;
  PlanTask task;
};

// Returns the task with one device more, a copy of the cluster's last one where all are in use. Where devices
// differ, it says which one that is.
Change with_another_device(PlanTask task) {
  Change change{"one more device", std::move(task)};
  PlanOptions& options = change.task.options;
  std::vector<Device>& devices = options.cluster.devices;
  options.stages += 1;
  if (devices.empty() || int(devices.size()) >= options.stages) return change;
  if (std::ranges::count(devices, devices.back()) < std::ssize(devices))
    change.what += " like " + device_in_short(int(devices.size()) - 1, options.cluster);
  devices.push_back(devices.back());
  return change;
}

std::vector<Change> changes(const PlanTask& task) {
  const Cluster& cluster = task.options.cluster;
  std::vector<Change> all;
  const auto changed = [&](const char* what, const std::function<void(Cluster&)>& change) {
    all.push_back({what, task});
    change(all.back().task.options.cluster);
  };
  if (!cluster.links_are_free()) all.push_back({without_waits, over_free_links(task)});
  if (cluster.limits_memory())
    changed(without_limit, [](Cluster& other) {
      for (Device& device : other.devices) device.memory_bytes = 0;
    });
  if (task.options.replicas.of_stage.empty() && task.options.cuts.empty())
    all.push_back(with_another_device(task));
  if (cluster.limits_memory())
    changed("1 GB more on each device", [](Cluster& other) {
      for (Device& device : other.devices)
        if (device.memory_bytes > 0) device.memory_bytes += 1'000'000'000;
    });
  if (!cluster.links_are_free())
    changed("1 GB/s more on each link", [](Cluster& other) {
      for (Link* link : {&other.within_node, &other.between_nodes})
        if (link->bytes_per_s > 0) link->bytes_per_s += 1e9;
    });
  return all;
}

// Returns nothing where there is no such plan: the network has too few nodes, say.
std::optional<double> pace_s(const Profile& profile, const PlanTask& task) {
  try {
    return plan_here(profile, task).pace_s();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::string explain(const Plan& plan, const Profile& profile, const PlanTask& task) {
  const double step_s = plan.pace_s();
  Table made({{"the step is made of", Table::Align::left}, {"ms"}, {"%"}});
  std::vector<Part> all = parts(plan, profile, task);
  for (const Part& part : all)
    made.add({part.what, milliseconds(part.seconds), fmt::format("{:.1f}", part.seconds / step_s * 100)});
  bool memory = false;
  Table better({{"planned anew with", Table::Align::left}, {"step\nms"}, {"%"}});
  for (const Change& change : changes(task)) {
    const std::optional<double> then_s = pace_s(profile, change.task);
    const double more_s = then_s ? *then_s - step_s : 0;
    better.add({change.what, then_s ? milliseconds(*then_s) : "no plan",
                then_s ? fmt::format("{:+.1f}", more_s / step_s * 100) : ""});
    if (change.what == without_limit) memory = -more_s > few * step_s;
    if (change.what == without_waits) all.back().seconds = std::max(all.back().seconds, -more_s);
  }
  const Part& most = *std::max_element(all.begin() + 1, all.end(),
                                       [](const Part& a, const Part& b) { return a.seconds < b.seconds; });
  const std::string binds = most.seconds < few * step_s ? all.front().binds : most.binds;
  return fmt::format("\n{}\n{}\nWhat binds is {}{}.\n", made.str(), better.str(), binds,
                     memory ? ", and memory" : "");
}

}  // namespace antichain
