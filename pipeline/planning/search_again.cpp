#include "pipeline/planning/search_again.h"

#include <algorithm>
#include <utility>

#include "framework/error.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/few_plans.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/memory_fit.h"

namespace antichain {
namespace {

constexpr int most_searches = 8;
constexpr double rounding_of_steps = 1e-9;
constexpr double least_step_down = 0.02;  // of a limit, where a search for its own program ends as before
constexpr double memory_growth = 1.3, memory_precision = 0.005;

}  // namespace

std::optional<CutAndOrder> search_again(const Profile& profile, const PlanOptions& options,
                                        const CutSearch& search) {
  std::optional<FewPlans> few;
  if (search.may_be_few) few = try_all_plans(profile, options, search.cut_for);
  const auto fastest_of_few = [&]() -> std::optional<CutAndOrder> {
    if (!few->fastest) return std::nullopt;
    return CutAndOrder{.plan = std::move(*few->fastest), .order = {}};
  };
  PlanOptions asked = options;
  double bound_s = 0;  // of the first round, in which more plans fit than do by their program
  const StageFitter fitter(profile, options.shard_optimiser, options.cluster);  // of programs that don't fit
  for (int round = 0; round <= most_searches; ++round) {
    if (round == most_searches) {  // the emptiest by the formula
      if (options.chunks > 1 || search.method != Method::antichain) return std::nullopt;
      asked = within(options, least_by_formula(profile, on_so_many(options, search.cut_for, options.stages)));
    }
    CutAndOrder found;
    try {
      found = search.find(asked);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      if (few) return fastest_of_few();
      if (round == 0) throw;
      if (round == most_searches) return std::nullopt;
      round = most_searches - 1;
      continue;
    }
    if (search.by_formula) return found;
    Plan& plan = found.plan;
    const Schedule& schedule = found.order.schedule;
    if (round == 0) bound_s = plan.lower_bound_s;
    const double planning_s = plan.planning_s;
    std::vector<int64_t> lacking = lacking_bytes(schedule, plan, profile, options.cluster);
    if (options.recompute && std::ranges::max(lacking) > 0 &&
        refit(plan, profile, for_schedule(options, schedule), schedule, fitter)) {
      search.time(found);
      lacking = lacking_bytes(schedule, plan, profile, options.cluster);
    }
    const bool fits = std::ranges::max(lacking) == 0;
    if (few && (!fits ||
                (few->fastest && few->fastest->objective_s() < plan.objective_s() * (1 - rounding_of_steps))))
      return fastest_of_few();
    if (fits) {
      plan.lower_bound_s = bound_s <= plan.objective_s() * (1 + rounding_of_steps)
                               ? but_for_rounding(bound_s, plan.objective_s())
                               : 0;
      plan.planning_s = planning_s;
      return found;
    }
    if (search.method != Method::antichain)  // it finds the same again
      check_program(schedule, plan, profile, options.cluster);
    if (of_a_step(options.objective)) {
      std::vector<int64_t> beside =
          beside_bytes(schedule, plan, profile, on_so_many(asked, search.cut_for, plan.ranks()));
      if (std::exchange(asked.beside_bytes, std::move(beside)) != asked.beside_bytes) continue;
    }
    step_down(asked.cluster, lacking);
  }
  return std::nullopt;
}

LeastMemory least_memory(const Profile& profile, const PlanOptions& options, const Policy& policy,
                         const Recomputation& recomputation,
                         const std::function<bool(const PlanOptions&)>& fits) {
  // 1. Begin where weights fit, and whatever the formula counts.
  int64_t held = 0, all = 0;
  for (const ProfileNode& node : profile.nodes) {
    held += held_bytes(node.cost);
    if (policy.asynchronous())  // as many older weights as there are stages, at most
      all += (options.devices() + 1) * (node.cost.param_bytes + node.cost.prepared_bytes);
    all += 2 * held_bytes(node.cost) +
           (options.microbatches + 2) * 4 * (node.cost.stash_bytes + node.cost.output_bytes);
  }
  int64_t low = std::max<int64_t>(1, held / options.devices());
  for (const Device& device : options.cluster.devices) low = std::max(low, device.memory_bytes);
  if (options.chunks == 1)
    low = std::max(low, least_by_formula(recomputing(profile, recomputation),
                                         on_so_many(options, policy, options.stages)) -
                            1);
  // 2. Find some memory that is enough, and the smallest by halves.
  int64_t high = low + 1;
  while (!fits(within(options, high))) {
    if (high > all) return {.exact = false};
    low = high;
    high = int64_t(double(high) * memory_growth) + 1;
  }
  while (high - low > std::max<int64_t>(1, int64_t(memory_precision * double(low)))) {
    const int64_t middle = low + (high - low) / 2;
    (fits(within(options, middle)) ? high : low) = middle;
  }
  return {high, /*exact=*/false};
}

int64_t least_by_formula(const Profile& profile, const PlanOptions& options) {
  return AntichainSearch(profile, options).least_memory().bytes;
}

PlanOptions within(PlanOptions options, int64_t memory_bytes) {
  if (options.cluster.devices.empty()) options.cluster.devices.resize(size_t(options.devices()));
  for (Device& device : options.cluster.devices) device.memory_bytes = memory_bytes;
  return options;
}

void step_down(Cluster& cluster, const std::vector<int64_t>& lacking) {
  for (Device& device : cluster.devices) {
    if (device.memory_bytes == 0) continue;
    device.memory_bytes -=
        std::max(std::ranges::max(lacking), int64_t(least_step_down * double(device.memory_bytes)));
    device.memory_bytes = std::max<int64_t>(1, device.memory_bytes);
  }
}

}  // namespace antichain
