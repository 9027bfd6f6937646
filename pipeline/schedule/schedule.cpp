// make_schedule composes the passes, one rank at a time, and validates what comes out.
#include "pipeline/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {
namespace {

constexpr std::array<std::pair<Policy, std::string_view>, 3> policies = {{
    {Policy::one_f_one_b, "1f1b"},
    {Policy::gpipe, "gpipe"},
    {Policy::forward_only, "forward-only"},
}};

}  // namespace

bool computes(Verb verb) {
  return verb == Verb::forward || verb == Verb::backward || verb == Verb::backward_input ||
         verb == Verb::backward_weight;
}

bool learns(const Schedule& schedule) {
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions)
      if (computes(a.verb) && a.verb != Verb::forward) return true;
  return false;
}

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

void check_shares(const Cut& cut, int microbatches) {
  if (microbatches < 1)
    throw Error(fmt::format("a schedule of {} micro-batches", microbatches), "give at least 1",
                ExitCode::usage);
  for (int s = 0; s < cut.stages(); ++s)
    if (cut.replicas(s) > microbatches)
      throw Error(
          fmt::format("stage {} of the plan has {} replicas, but the step has {} micro-batch{}: rank {} "
                      "would have nothing to do",
                      s, cut.replicas(s), microbatches, microbatches == 1 ? "" : "es",
                      cut.ranks[s][microbatches]),
          fmt::format("give at least {} micro-batches, or plan with fewer replicas", cut.replicas(s)),
          ExitCode::usage);
}

std::vector<Share> shares(const Cut& cut, int microbatches) {
  int devices_left = 0;
  for (const auto& ranks : cut.ranks) devices_left += int(ranks.size());
  std::vector<Share> shares;
  for (int s = 0; s < cut.stages(); devices_left -= cut.replicas(s++))
    for (int i = 0; i < cut.replicas(s); ++i)
      shares.push_back({s, i, cut.replicas(s), devices_left, microbatches});
  return shares;
}

Share share_of(const Plan& plan, int rank, int microbatches) {
  Share share{.microbatches = microbatches};
  for (const PlanStage& stage : plan.stages) {
    const auto own = std::ranges::find(stage.ranks, rank);
    share.replicas = int(stage.ranks.size());
    share.first = int(own - stage.ranks.begin());
    if (own != stage.ranks.end()) break;
    ++share.stage;
  }
  ANTICHAIN_CHECK(share.stage < int(plan.stages.size()), "every rank has a stage");
  share.devices_left = plan.ranks();
  for (int s = 0; s < share.stage; ++s) share.devices_left -= int(plan.stages[size_t(s)].ranks.size());
  return share;
}

Schedule compose(const Cut& cut, Policy policy, int microbatches) {
  check_shares(cut, microbatches);
  const std::vector<Share> all = shares(cut, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = std::vector<std::vector<Action>>(all.size())};
  for (const Share& share : all) {
    std::vector<Action>& actions = schedule.ranks[cut.ranks[share.stage][share.first]];
    actions = add_messages(compute_order(policy, share), cut, share);
    add_updates(actions, share);
  }
  return schedule;
}

Schedule make_schedule(const Profile& network, const Plan& plan, Policy policy, int microbatches) {
  validate(plan, network);
  const Schedule schedule = compose(cut_of(network, plan), policy, microbatches);
  validate(schedule, network, plan);
  return schedule;
}

}  // namespace antichain
