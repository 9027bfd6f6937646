#include "pipeline/planning/schedule_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "framework/random.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/planning.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

namespace {

// Shares of the budget for the order of each plan that is compared.
constexpr double effort_to_compare = 0.1, effort_of_a_glance = 0.02;

constexpr std::string_view any_order = "any";

// Returns the hash of what a bound of the plan's objective holds for, with orders of the policy of this name
// or with any. A bottleneck without replicas depends on neither micro-batches nor their order, unless there
// are limits of memory.
std::string subject_of_bound(const Plan& plan, const Profile& profile, const PlanOptions& options,
                             std::string_view order) {
  std::string text = to_json(profile) + to_json(options.cluster);
  text += fmt::format("{} on {} ranks, by stage", name_of(*plan.objective), plan.ranks());
  for (const PlanStage& stage : plan.stages) text += fmt::format(" {}", stage.ranks.size());
  if (of_a_step(*plan.objective) || has_replicas(plan) || options.cluster.limits_memory())
    text += fmt::format(", {} {}", options.microbatches, order);
  // A bound for plans that recompute nothing is none for those that do.
  const auto recomputes = [](const PlanStage& stage) { return !stage.recomputed.empty(); };
  if (std::ranges::any_of(plan.stages, recomputes)) text += ", recomputing";
  if (plan.shard_optimiser) text += ", sharded";
  return fmt::format("{:016x}", hash_bytes(text));
}

// Returns the options for the micro-batches that this schedule has in flight.
PlanOptions options_of(const Schedule& schedule, PlanOptions options) {
  options.in_flight = in_flight_of(schedule.ranks);
  return options;
}

// Returns the policy that cuts for a searched order, and the first one of each placement of several stages.
std::vector<const Policy*> one_of_each_placement() {
  std::vector<const Policy*> found = {&Policy::zero_bubble_h1};
  for (const Policy& of : policies())
    if (of.trains && default_chunks(of.placement) > 1 &&
        std::ranges::find(found, of.placement, &Policy::placement) == found.end())
      found.push_back(&of);
  return found;
}

void set_pace(Plan& plan, const PlannedOrder& order) {
  plan.step_s = order.step_s, plan.period_s = order.period_s;
}

// Returns what check_memory throws.
std::exception_ptr refusal_of(const Plan& plan, const Cluster& cluster) {
  try {
    check_memory(plan, cluster);
  } catch (const Error&) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names = training_policies();
  names.emplace_back(planned_order);
  return names;
}

const Policy& ScheduleChoice::policy() const {
  return planned() ? Policy::zero_bubble_h1 : antichain::policy(name);
}

// Where no step waits for the one before, the slowest stage or link is what a step takes.
Objective ScheduleChoice::objective(const PlanOptions& options) const {
  if (policy().asynchronous() && of_a_step(options.objective)) return Objective::compute_or_transfer;
  return planned() && options.objective == Objective::makespan && options.steps == Steps::overlapped
             ? Objective::period
             : options.objective;
}

Plan ScheduleChoice::plan(const Profile& profile, const PlanOptions& options, Method method) const {
  Plan plan = search(profile, options, method);
  if (options.together.empty())  // else the bound is only of such plans
    plan.bound_for = subject_of_bound(plan, profile, options, planned() ? any_order : policy().name);
  return plan;
}

Plan ScheduleChoice::judge(const Profile& profile, const Plan& given, const PlanOptions& asked,
                           const std::optional<Schedule>& schedule) const {
  if (planned() && !schedule) return judge(profile, given, asked, this->schedule(profile, given, asked));
  PlanOptions options = asked;
  options.objective = objective(asked);
  options.shard_optimiser = given.shard_optimiser;
  options.chunks = std::max(1, int(given.stages.size()) / given.ranks());
  Pace its;
  if (schedule) {
    const Timeline timeline = simulate(*schedule, given, profile, options.cluster, options.steps);
    its = {timeline.step_s, timeline.period_s};
  } else {
    its = pace(profile, given, policy(), options.microbatches, options.cluster, options.steps);
  }
  Plan plan = finish_plan(profile,
                          planned() && learns(*schedule) ? options_of(*schedule, options)
                                                         : on_so_many(options, policy(), given.ranks()),
                          given.stages, given.method, 0);
  plan.step_s = its.step_s, plan.period_s = its.period_s;
  check_memory(plan, options.cluster);
  plan.lower_bound_s = 0;
  const auto is_for = [&](std::string_view order) {
    return given.bound_for == subject_of_bound(plan, profile, options, order);
  };
  const bool evaluates = schedule && !learns(*schedule) && of_a_step(options.objective);
  if (given.bound_for.empty() || evaluates || !(is_for(any_order) || (!schedule && is_for(policy().name))))
    return plan;
  // Files have whole nanoseconds. A bound above the plan is none.
  const double above_s = plan.objective_s() - given.lower_bound_s;
  if (above_s < -1e-9) return plan;
  plan.lower_bound_s = above_s < 1e-9 ? plan.objective_s() : given.lower_bound_s;
  plan.bound_for = given.bound_for, plan.states = given.states, plan.planning_s = given.planning_s;
  return plan;
}

Plan ScheduleChoice::search(const Profile& profile, const PlanOptions& asked, Method method) const {
  PlanOptions options = asked;
  options.objective = objective(asked);
  if (!planned()) return plan_network(profile, options, method, policy());
  // The searches know nothing of each other, so they run beside each other, where there are threads for them.
  std::vector<std::future<CutAndOrder>> searches;
  const auto begin = [&](auto search) {
    searches.push_back(std::async(std::launch::async | std::launch::deferred, std::move(search)));
  };
  const auto begin_by = [&](const Policy& cut_for, int chunks, int most_in_flight = 0) {
    begin([&, chunks, most_in_flight] {
      PlanOptions by = options;
      by.chunks = chunks, by.most_in_flight = most_in_flight;
      CutAndOrder found;
      found.plan = plan_network(profile, by, method, cut_for);
      found.order = order(profile, found.plan, options, {.effort = effort_to_compare});
      return found;
    });
  };
  for (const Policy* cut_for : {&policy(), &Policy::one_f_one_b}) begin_by(*cut_for, 1);
  const bool free = of_a_step(options.objective) && method == Method::antichain && !options.at_most;
  for (const Policy& of : policies())
    if (const int chunks = default_chunks(of.placement); free && two_stages && of.trains && chunks > 1)
      begin_by(of, chunks);
  const auto begin_together = [&](const Policy& cut_for, int chunks, int most_in_flight = 0) {
    begin([&, chunks, most_in_flight] {
      PlanOptions by = options;
      by.chunks = chunks, by.most_in_flight = most_in_flight;
      return together(profile, by, cut_for);
    });
  };
  for (const Policy* of : one_of_each_placement())
    if (const int chunks = default_chunks(of->placement); free && (chunks == 1 || two_stages))
      begin_together(*of, chunks);
  // An order may have less in flight than the policies above, which memory may ask for.
  const int fewest = options.cluster.limits_memory() ? 1 : std::min(options.stages, options.microbatches);
  for (int most = fewest; most < std::min(options.stages, options.microbatches); ++most)
    if (free)
      begin_together(Policy::one_f_one_b, 1, most);
    else
      begin_by(Policy::one_f_one_b, 1, most);
  for (const std::future<CutAndOrder>& search : searches) search.wait();
  // A rank's two stages need what their own order has in flight.
  const auto priced = [&](const Plan& plan, const Schedule& schedule) {
    Plan its = finish_plan(profile, options_of(schedule, options), plan.stages, plan.method, plan.states);
    its.planning_s = plan.planning_s;
    return its;
  };
  std::optional<CutAndOrder> best;
  double bound_s = 0;  // for any plan and any order, where it is known
  std::exception_ptr refusal;
  for (std::future<CutAndOrder>& search : searches) try {
      CutAndOrder found = search.get();
      // Limits of memory are the policy's own, and there are orders that need less.
      if (&search == &searches.front() && !options.cluster.limits_memory())
        bound_s = found.plan.lower_bound_s;
      if (const Plan its = priced(found.plan, found.order.schedule);
          lacking_bytes(its, options.cluster) > 0) {  // with --in-flight an order may take too much
        if (!refusal) refusal = refusal_of(its, options.cluster);
        continue;
      }
      if (!best || found.order.pace_s() < best->order.pace_s()) best = std::move(found);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      if (!refusal) refusal = std::current_exception();
    }
  if (!best) std::rethrow_exception(refusal);
  Plan& plan = best->plan;
  const bool several = has_several_stages_a_rank(plan);
  // Another order of a rank's two stages might not fit where this one does.
  const double effort = several && options.cluster.limits_memory() ? 0 : 1;
  const PlannedOrder found =
      order(profile, plan, options, {.effort = effort, .start = best->order.orders, .memo = memo.get()});
  plan = priced(plan, found.schedule);
  set_pace(plan, found);
  check_memory(plan, options.cluster);
  if (of_a_step(options.objective)) {
    if (free && two_stages) options.chunks = 2, bound_s = 0;  // for the wider choice
    if (bound_s == 0) bound_s = pace_bound_s(profile, options, true);
    plan.lower_bound_s = but_for_rounding(bound_s, plan.objective_s());
  }
  return plan;
}

std::optional<CutAndOrder> ScheduleChoice::glance(const Profile& profile, const PlanOptions& options,
                                                  double seconds) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::optional<CutAndOrder> best;
  for (const Policy* cut_for : one_of_each_placement()) {
    PlanOptions by = options;
    by.objective = Objective::compute_or_transfer;
    by.chunks = default_chunks(cut_for->placement);
    if (std::chrono::steady_clock::now() > end) break;
    try {
      CutAndOrder found;
      found.plan = plan_network(profile, by, Method::antichain, *cut_for);
      found.order = order(profile, found.plan, options, {.effort = effort_of_a_glance});
      if (!best || found.order.pace_s() < best->order.pace_s()) best = std::move(found);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
    }
  }
  return best;
}

CutAndOrder ScheduleChoice::together(const Profile& profile, const PlanOptions& options,
                                     const Policy& cut_for) const {
  SearchLimits limits;
  limits.of_plan = [&](const Plan& plan) { return this->limits(profile, plan, options); };
  limits.of_stages = [&](const StageSums& sums, const std::vector<int>& device) {
    const int stages = int(sums.stages.size());
    std::vector<int> of_stage = given_limits(stages);
    for (int s = 0; in_flight.empty() && s < stages; ++s)
      of_stage.push_back(default_in_flight(
          stages, options.microbatches, options.cluster.device(device[size_t(s)]).memory_bytes,
          sums.stages[size_t(s)].held_bytes, sums.stages[size_t(s)].kept_bytes));
    return of_stage;
  };
  return cut_and_order(profile, options, cut_for, limits);
}

// Returns nothing where none are given.
std::vector<int> ScheduleChoice::given_limits(int ranks) const {
  if (in_flight.size() == 1) return std::vector<int>(size_t(ranks), in_flight.front());
  if (!in_flight.empty() && int(in_flight.size()) != ranks)
    throw Error(fmt::format("--in-flight has {} numbers, but the plan has {} ranks", in_flight.size(), ranks),
                "give one number for all, or one for each rank", ExitCode::usage);
  return in_flight;
}

PlannedOrder ScheduleChoice::order(const Profile& profile, const Plan& plan, const PlanOptions& options,
                                   OrderRequest request) const {
  request.steps = options.steps;
  return plan_order(profile, plan, options.cluster, options.microbatches, limits(profile, plan, options),
                    request);
}

Schedule ScheduleChoice::schedule(const Profile& profile, const Plan& plan,
                                  const PlanOptions& options) const {
  if (!planned()) return make_flowing_schedule(profile, plan, policy(), options.microbatches);
  return order(profile, plan, options, {.memo = memo.get()}).schedule;
}

std::vector<int> ScheduleChoice::limits(const Profile& profile, const Plan& plan,
                                        const PlanOptions& options) const {
  return in_flight.empty() ? default_in_flight(profile, plan, options.cluster, options.microbatches)
                           : given_limits(plan.ranks());
}

}  // namespace antichain
