#include "pipeline/planning/schedule_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <utility>

#include "framework/error.h"
#include "framework/random.h"
#include "partition/plan/finish_plan.h"
#include "pipeline/planning/chunks.h"
#include "pipeline/planning/few_plans.h"
#include "pipeline/planning/makespan_bound.h"
#include "pipeline/planning/memory_fit.h"
#include "pipeline/planning/planning.h"
#include "pipeline/planning/search_again.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {

namespace {

// Shares of the budget for the order of each plan that is compared.
constexpr double effort_to_compare = 0.1, effort_of_a_glance = 0.02;

constexpr int most_searches_recomputing = 12;
constexpr int64_t roomy = 1024;  // times as much memory
constexpr int most_tries_with_less = 8;

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

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names = training_policies();
  names.emplace_back(planned_order);
  return names;
}

Policy ScheduleChoice::policy() const {
  return planned() ? Policy::zero_bubble_h1 : antichain::policy(name).predicting(predict);
}

// Where no step waits for the one before, the slowest stage or link is what a step takes.
Objective ScheduleChoice::objective(const PlanOptions& options) const {
  if (policy().asynchronous() && of_a_step(options.objective)) return Objective::compute_or_transfer;
  return planned() && options.objective == Objective::makespan && options.steps == Steps::overlapped
             ? Objective::period
             : options.objective;
}

Plan ScheduleChoice::plan(const Profile& profile, const PlanOptions& options, Method method) const {
  std::optional<Plan> plan;
  std::exception_ptr refusal;
  try {
    plan = search(profile, options, method);
  } catch (const Error& error) {
    if (error.code() != ExitCode::bad_input || by_formula || method != Method::antichain) throw;
    refusal = std::current_exception();
  }
  if (!plan) {
    const LeastMemory least = least_memory(profile, options, method);
    if (least.bytes == 0 && refusal) std::rethrow_exception(refusal);
    throw does_not_fit(profile, options, least);
  }
  if (options.together.empty() && !recomputation.given())  // else the bound is only of such plans
    plan->bound_for = subject_of_bound(*plan, profile, options, planned() ? any_order : policy().name);
  return *plan;
}

// Stages that recompute what was named are cut by costs that know nothing of what is there meanwhile. So
// where a plan does not fit, cuts are searched again for less memory.
std::optional<Plan> ScheduleChoice::search(const Profile& profile, const PlanOptions& asked,
                                           Method method) const {
  if (!recomputation.given()) return search_cuts(profile, asked, method);
  const Profile costs = recomputing(profile, recomputation);
  PlanOptions less = asked;
  less.cluster.profiles =
      changed(less.cluster.profiles, [&](const Profile& kind) { return recomputing(kind, recomputation); });
  if (method != Method::antichain)  // it would refuse by those costs
    for (Device& device : less.cluster.devices) device.memory_bytes *= roomy;
  for (int searches = 0; searches < most_searches_recomputing; ++searches) {
    std::optional<Plan> plan = search_cuts(costs, less, method);
    if (!plan) return std::nullopt;
    recompute(*plan, profile, recomputation);
    const std::vector<int64_t> lacking =
        lacking_bytes(schedule(profile, *plan, asked), *plan, profile, asked.cluster);
    if (std::ranges::max(lacking) == 0 || method != Method::antichain) {
      const double planning_s = plan->planning_s;
      plan = judge(profile, *plan, asked);
      plan->planning_s = planning_s;
      return plan;
    }
    step_down(less.cluster, lacking);
  }
  return std::nullopt;
}

std::optional<Plan> ScheduleChoice::search_cuts(const Profile& profile, const PlanOptions& asked,
                                                Method method) const {
  PlanOptions options = asked;
  options.objective = objective(asked);
  return planned() ? search_orders(profile, options, method)
                   : search_policy(profile, options, method, policy());
}

std::optional<Plan> ScheduleChoice::search_policy(const Profile& profile, const PlanOptions& options,
                                                  Method method, const Policy& policy) const {
  const auto find = [&](const PlanOptions& by) {
    CutAndOrder found;
    found.plan = plan_network(profile, by, method, policy);
    found.order.schedule = make_flowing_schedule(profile, found.plan, policy, options.microbatches);
    return found;
  };
  const auto time = [&](CutAndOrder& found) { set_pace(found.plan, profile, options, policy); };
  const bool may_be_few = !planned() && !by_formula && method == Method::antichain;
  std::optional<CutAndOrder> found =
      search_again(profile, options, {policy, method, find, time, may_be_few, by_formula});
  if (!found) return std::nullopt;
  return std::move(found->plan);
}

LeastMemory ScheduleChoice::least_memory(const Profile& profile, const PlanOptions& options,
                                         Method method) const {
  const auto fits = [&](const PlanOptions& limited) {
    try {
      return search(profile, limited, method).has_value();
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      return false;
    }
  };
  if (!planned() && !recomputation.given())
    if (const std::optional<FewPlans> few = try_all_plans(profile, options, policy()))
      return {few->least_bytes};
  PlanOptions by = options;
  if (planned()) by.most_in_flight = 1;
  LeastMemory least =
      antichain::least_memory(profile, by, planned() ? Policy::one_f_one_b : policy(), recomputation, fits);
  // An order of another cut may do with a little less.
  for (int tries = 0; planned() && tries < most_tries_with_less; ++tries) {
    const int64_t less = least.bytes - least.bytes / 100;
    if (less == least.bytes || !fits(within(options, less))) break;
    least.bytes = less;
  }
  return least;
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
                          planned() && learns(*schedule) ? for_schedule(options, *schedule)
                                                         : on_so_many(options, policy(), given.ranks()),
                          given.stages, given.method, 0);
  plan.step_s = its.step_s, plan.period_s = its.period_s;
  if (by_formula)
    check_formula(plan, options.cluster);
  else
    check_program(schedule ? *schedule : make_flowing_schedule(profile, plan, policy(), options.microbatches),
                  plan, profile, options.cluster);
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

std::optional<Plan> ScheduleChoice::search_orders(const Profile& profile, PlanOptions options,
                                                  Method method) const {
  const bool free = of_a_step(options.objective) && method == Method::antichain && !options.at_most;
  const auto ordered = [&](Plan plan, std::optional<RankOrders> start = {}) {
    CutAndOrder found{.plan = std::move(plan), .order = {}};
    found.order =
        order(profile, found.plan, options, {.effort = effort_to_compare, .start = std::move(start)});
    set_pace(found.plan, found.order);
    return found;
  };
  const auto time = [&](CutAndOrder& found) { found = ordered(found.plan, found.order.orders); };
  // The searches know nothing of each other, so they run beside each other, where there are threads for them.
  std::vector<std::future<std::optional<CutAndOrder>>> searches;
  // They cut for a policy's own order, or for any with so many in flight, and, where free to, for the order.
  const auto begin = [&](const Policy& cut_for, int chunks, bool own_order, int most_in_flight = 0) {
    PlanOptions by = options;
    by.chunks = chunks, by.most_in_flight = most_in_flight;
    searches.push_back(std::async(
        std::launch::async | std::launch::deferred, [&, by, own_order]() -> std::optional<CutAndOrder> {
          if (own_order) {
            std::optional<Plan> plan = search_policy(profile, by, method, cut_for);
            return plan ? std::optional(ordered(std::move(*plan))) : std::nullopt;
          }
          const auto find = [&](const PlanOptions& its) {
            return free ? together(profile, its, cut_for)
                        : ordered(plan_network(profile, its, method, cut_for));
          };
          return search_again(profile, by, {cut_for, method, find, time, /*may_be_few=*/false, by_formula});
        }));
  };
  if (options.most_in_flight > 0) {
    begin(Policy::one_f_one_b, 1, false, options.most_in_flight);
  } else {
    for (const Policy* cut_for : {&Policy::zero_bubble_h1, &Policy::one_f_one_b}) begin(*cut_for, 1, true);
    for (const Policy& of : policies())
      if (const int chunks = default_chunks(of.placement); free && two_stages && of.trains && chunks > 1)
        begin(of, chunks, true);
    for (const Policy* of : one_of_each_placement())
      if (const int chunks = default_chunks(of->placement); free && (chunks == 1 || two_stages))
        begin(*of, chunks, false);
    // An order may have less in flight than the policies above, which memory may ask for.
    const int most_at_once = std::min(options.stages, options.microbatches);
    for (int most = options.cluster.limits_memory() ? 1 : most_at_once; most < most_at_once; ++most)
      begin(Policy::one_f_one_b, 1, false, most);
  }
  for (const auto& search : searches) search.wait();
  // A rank's two stages need what their own order has in flight.
  const auto priced = [&](const CutAndOrder& found) {
    const Plan& plan = found.plan;
    Plan its = finish_plan(profile, for_schedule(options, found.order.schedule), plan.stages, plan.method,
                           plan.states);
    its.planning_s = plan.planning_s;
    return its;
  };
  std::optional<CutAndOrder> best;
  double bound_s = 0;  // for any plan and any order, where it is known
  std::exception_ptr refusal;
  for (auto& search : searches) try {
      std::optional<CutAndOrder> found = search.get();
      if (!found) continue;
      if (found->order.lacking_bytes > 0 ||
          (by_formula && lacking_bytes(priced(*found), options.cluster) > 0))
        continue;
      // Limits of memory are the policy's own, and there are orders that need less.
      if (&search == &searches.front() && !options.cluster.limits_memory())
        bound_s = found->plan.lower_bound_s;
      if (!best || found->order.pace_s() < best->order.pace_s()) best = std::move(found);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      if (!refusal) refusal = std::current_exception();
    }
  if (!best && refusal) std::rethrow_exception(refusal);
  if (!best) return std::nullopt;
  // By the formula another order of a rank's two stages might not fit where this one does.
  const bool as_it_is =
      by_formula && options.cluster.limits_memory() && has_several_stages_a_rank(best->plan);
  best->order = order(profile, best->plan, options,
                      {.effort = as_it_is ? 0. : 1., .start = best->order.orders, .memo = memo.get()});
  Plan plan = priced(*best);
  set_pace(plan, best->order);
  if (by_formula) check_formula(plan, options.cluster);
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
      if (found.order.lacking_bytes == 0 && (!best || found.order.pace_s() < best->order.pace_s()))
        best = std::move(found);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
    }
  }
  return best;
}

CutAndOrder ScheduleChoice::together(const Profile& profile, const PlanOptions& options,
                                     const Policy& cut_for) const {
  SearchLimits limits;
  limits.by_formula = by_formula;
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
  request.by_formula = by_formula;
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
