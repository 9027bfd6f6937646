// make_schedule composes the passes, one rank at a time.
#include "pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule_passes.h"

namespace antichain {
namespace {

constexpr std::array<std::pair<Policy, std::string_view>, 3> policies = {{
    {Policy::one_f_one_b, "1f1b"},
    {Policy::gpipe, "gpipe"},
    {Policy::forward_only, "forward-only"},
}};

}  // namespace

Policy policy(std::string_view name) {
  std::string known;
  for (const auto& [policy, its_name] : policies) {
    if (its_name == name) return policy;
    known += (known.empty() ? "" : ", ") + std::string(its_name);
  }
  throw Error(fmt::format("unknown schedule \"{}\"", name), "there are " + known, ExitCode::usage);
}

std::string_view name_of(Policy policy) {
  return std::find_if(policies.begin(), policies.end(), [&](auto& p) { return p.first == policy; })->second;
}

Schedule make_schedule(const Profile& network, const Plan& plan, Policy policy, int microbatches) {
  if (microbatches < 1)
    throw Error(fmt::format("a schedule of {} micro-batches", microbatches), "give at least 1",
                ExitCode::usage);
  const Cut cut = cut_of(network, plan);
  const int stages = int(plan.stages.size());

  Schedule schedule{.microbatches = microbatches, .ranks = std::vector<std::vector<Action>>(stages)};
  for (int s = 0; s < stages; ++s) {
    const std::vector<Action> compute = compute_order(policy, stages, s, microbatches);
    schedule.ranks[cut.rank_of[s]] = add_updates(add_messages(compute, cut), s);
  }
  validate(schedule, network, plan);
  return schedule;
}

}  // namespace antichain
