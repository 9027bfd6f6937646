// make_schedule composes the passes, one rank at a time, and validates what comes out.
#include "pipeline/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

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

void check_seats(const Crossing& crossing, int microbatches) {
  if (microbatches < 1)
    throw Error(fmt::format("a schedule of {} micro-batches", microbatches), "give at least 1",
                ExitCode::usage);
  for (int s = 0; s < crossing.stages(); ++s)
    if (crossing.replicas(s) > microbatches)
      throw Error(
          fmt::format("stage {} of the plan has {} replicas, but the step has {} micro-batch{}: rank {} "
                      "would have nothing to do",
                      s, crossing.replicas(s), microbatches, microbatches == 1 ? "" : "es",
                      crossing.ranks[s][microbatches]),
          fmt::format("give at least {} micro-batches, or plan with fewer replicas", crossing.replicas(s)),
          ExitCode::usage);
}

std::vector<Seat> seats(const Crossing& crossing, int microbatches) {
  int devices_left = 0;
  for (const auto& ranks : crossing.ranks) devices_left += int(ranks.size());
  std::vector<Seat> seats;
  for (int s = 0; s < crossing.stages(); devices_left -= crossing.replicas(s++))
    for (int i = 0; i < crossing.replicas(s); ++i)
      seats.push_back({s, i, crossing.replicas(s), devices_left, microbatches});
  return seats;
}

Seat seat_of(const Plan& plan, int rank, int microbatches) {
  Seat seat{.microbatches = microbatches};
  for (const PlanStage& stage : plan.stages) {
    const auto own = std::ranges::find(stage.ranks, rank);
    seat.replicas = int(stage.ranks.size());
    seat.replica = int(own - stage.ranks.begin());
    if (own != stage.ranks.end()) break;
    ++seat.stage;
  }
  ANTICHAIN_CHECK(seat.stage < int(plan.stages.size()), "every rank has a stage");
  seat.devices_left = plan.ranks();
  for (int s = 0; s < seat.stage; ++s) seat.devices_left -= int(plan.stages[size_t(s)].ranks.size());
  return seat;
}

Schedule compose(const Crossing& crossing, const Policy& policy, int microbatches) {
  check_seats(crossing, microbatches);
  const std::vector<Seat> all = seats(crossing, microbatches);
  Schedule schedule{.microbatches = microbatches, .ranks = std::vector<std::vector<Action>>(all.size())};
  for (const Seat& seat : all) {
    std::vector<Action>& actions = schedule.ranks[crossing.ranks[seat.stage][seat.replica]];
    actions = add_messages(policy.order(seat), crossing, seat);
    add_updates(actions, seat);
  }
  return schedule;
}

Schedule make_schedule(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches) {
  validate(plan, profile);
  const Schedule schedule = compose(crossing_of(profile, plan), policy, microbatches);
  validate(schedule, profile, plan);
  return schedule;
}

}  // namespace antichain
