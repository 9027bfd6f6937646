#include "pipeline/planning/schedule_choice.h"

#include <fmt/format.h>

#include <exception>
#include <optional>

#include "framework/error.h"
#include "pipeline/planning/planning.h"

namespace antichain {

std::vector<std::string> schedule_names() {
  std::vector<std::string> names = training_policies();
  names.emplace_back(planned_order);
  return names;
}

const Policy& ScheduleChoice::policy() const { return antichain::policy(planned() ? "zb-h1" : name); }

Plan ScheduleChoice::plan(const Profile& profile, const PlanOptions& options, Method method) const {
  if (!planned()) return plan_network(profile, options, method, policy());
  std::optional<Plan> best;
  std::exception_ptr refusal;
  for (const Policy* cut_for : {&policy(), &Policy::one_f_one_b}) try {
      Plan plan = plan_network(profile, options, method, *cut_for);
      const PlannedOrder order = this->order(profile, plan, options);
      plan.step_s = order.step_s, plan.period_s = order.period_s;
      if (!best || plan.pace_s() < best->pace_s()) best = std::move(plan);
    } catch (const Error& error) {
      if (error.code() == ExitCode::failure) throw;
      if (!refusal) refusal = std::current_exception();
    }
  if (!best) std::rethrow_exception(refusal);
  return *best;
}

PlannedOrder ScheduleChoice::order(const Profile& profile, const Plan& plan,
                                   const PlanOptions& options) const {
  return plan_order(profile, plan, options.cluster, options.microbatches, limits(profile, plan, options),
                    {.steps = options.steps});
}

Schedule ScheduleChoice::schedule(const Profile& profile, const Plan& plan,
                                  const PlanOptions& options) const {
  if (!planned()) return make_schedule(profile, plan, policy(), options.microbatches);
  return order(profile, plan, options).schedule;
}

std::vector<int> ScheduleChoice::limits(const Profile& profile, const Plan& plan,
                                        const PlanOptions& options) const {
  if (in_flight.empty()) return default_in_flight(profile, plan, options.cluster, options.microbatches);
  if (in_flight.size() == 1) return std::vector<int>(size_t(plan.ranks()), in_flight.front());
  if (int(in_flight.size()) != plan.ranks())
    throw Error(
        fmt::format("--in-flight has {} numbers, but the plan has {} ranks", in_flight.size(), plan.ranks()),
        "give one number for all, or one for each rank", ExitCode::usage);
  return in_flight;
}

}  // namespace antichain
