// make_schedule composes the passes, one rank at a time, and validates what comes out.
#include "pipeline/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "framework/error.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

// Simulating this many messages takes about a GiB. Their number is known once the network is cut, because
// each tensor that another stage needs is a message, and a cut may part few of a network's edges or nearly
// all.
constexpr int64_t most_messages = 2'000'000;

bool computes(Verb verb) {
  return verb == Verb::forward || verb == Verb::backward || verb == Verb::backward_input ||
         verb == Verb::backward_weight;
}

std::string_view words_of(Flow flow) {
  constexpr std::string_view words[] = {"activation", "gradient", "gradient of shared weights"};
  return words[size_t(flow)];
}

int64_t message_bytes(const Profile& profile, const Message& message) {
  const ProfileNode& node = profile.nodes.at(size_t(message.tensor));
  if (message.flow != Flow::weight) return node.cost.output_bytes;
  const auto use = std::ranges::find(node.shared, message.consumer, &SharedUse::param);
  return use == node.shared.end() ? 0 : use->bytes;
}

bool learns(const Schedule& schedule) {
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions)
      if (computes(a.verb) && a.verb != Verb::forward) return true;
  return false;
}

bool has_delays(const Schedule& schedule) {
  return std::ranges::any_of(schedule.delays, [](int delay) { return delay > 0; });
}

bool has_halves(const Schedule& schedule) {
  for (const auto& actions : schedule.ranks)
    for (const Action& a : actions)
      if (a.verb == Verb::backward_input) return true;
  return false;
}

bool has_votes(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const auto& actions) {
    return std::ranges::find(actions, Verb::vote, &Action::verb) != actions.end();
  });
}

Schedule first_steps(const Schedule& schedule, int steps) {
  if (steps >= schedule.steps) return schedule;
  Schedule first = schedule;
  first.microbatches = steps * schedule.microbatches_of_step(), first.steps = steps;
  for (auto& actions : first.ranks) {
    std::map<Action, int> before;  // of those that a step has once
    std::erase_if(actions, [&](const Action& a) {
      return a.microbatch < 0 ? before[a]++ >= steps : a.microbatch >= first.microbatches;
    });
  }
  return first;
}

Schedule with_votes(Schedule schedule) {
  if (has_votes(schedule)) return schedule;
  for (auto& actions : schedule.ranks) {
    const auto update = std::ranges::find(actions, Verb::update, &Action::verb);
    if (update != actions.end()) actions.insert(update, Action{.verb = Verb::vote, .stage = update->stage});
  }
  return schedule;
}

std::vector<double> peak_in_flight(const Schedule& schedule) {
  const bool training = learns(schedule);
  std::vector<double> peaks;
  for (const auto& actions : schedule.ranks) {
    int alive = 0, most = 0;
    std::set<int> stages;
    for (const Action& a : actions) {
      stages.insert(a.stage);
      if (a.verb == Verb::forward) most = std::max(most, ++alive);
      alive -=
          training ? a.verb == Verb::backward || a.verb == Verb::backward_weight : a.verb == Verb::forward;
    }
    peaks.push_back(double(most) / double(std::max<size_t>(1, stages.size())));
  }
  return peaks;
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
  const int64_t messages = int64_t(crossing.activations.size() + crossing.gradients.size()) * microbatches +
                           int64_t(all_weight_routes(crossing).size());
  if (messages > most_messages)
    throw Error(
        fmt::format("a step of {} micro-batches would pass {} tensors between the plan's {} stages, more "
                    "than the {} that a schedule can have",
                    microbatches, messages, crossing.stages(), most_messages),
        "give fewer stages or micro-batches", ExitCode::usage);
}

Seats seats(const std::vector<std::vector<int>>& ranks, int microbatches, int steps) {
  Seats seats;
  for (size_t s = ranks.size(); s-- > 0;) {
    for (size_t i = 0; i < ranks[s].size(); ++i) {
      const size_t rank = size_t(ranks[s][i]);
      if (seats.size() <= rank) seats.resize(rank + 1);
      seats[rank].insert(seats[rank].begin(),
                         {int(s), int(i), int(ranks[s].size()), 0, 0, microbatches, steps});
    }
    const auto seated = [](const RankSeats& of_rank) { return !of_rank.empty(); };
    const int devices_left = int(std::ranges::count_if(seats, seated));
    for (const int rank : ranks[s]) seats[size_t(rank)].front().devices_left = devices_left;
  }
  for (RankSeats& of_rank : seats)
    for (Seat& seat : of_rank) seat.devices = int(seats.size());
  return seats;
}

RankSeats seats_of(const Plan& plan, int rank, int microbatches) {
  stages_of_rank(plan, rank);  // or there is no such rank
  std::vector<std::vector<int>> ranks;
  for (const PlanStage& stage : plan.stages) ranks.push_back(stage.ranks);
  return seats(ranks, microbatches)[size_t(rank)];
}

Seat seat_of(const Plan& plan, int rank, int microbatches) {
  stage_of_rank(plan, rank);  // or it has several
  return seats_of(plan, rank, microbatches).front();
}

Schedule complete(const ComputeOrders& orders, const Crossing& crossing, const Seats& seats, int microbatches,
                  int steps) {
  Schedule schedule{.microbatches = microbatches, .steps = steps};
  for (size_t r = 0; r < seats.size(); ++r) {
    schedule.ranks.push_back(add_messages(orders[r], crossing));
    if (steps == 1)
      add_updates(schedule.ranks.back(), seats[r], crossing);
    else
      add_update_of_each_step(schedule.ranks.back(), seats[r].front(), crossing);
  }
  return schedule;
}

int steps_in_a_row(const Policy& policy, const Crossing& crossing, int microbatches) {
  constexpr int microbatches_a_rank = 100, most_microbatches = 4096;
  int ranks = 0;
  bool wait = !crossing.weights.empty();
  for (int s = 0; s < crossing.stages(); ++s) {
    ranks = std::max(ranks, 1 + std::ranges::max(crossing.ranks[size_t(s)]));
    wait = wait || microbatches % crossing.replicas(s) != 0;
  }
  if (!policy.asynchronous() || ranks == 1 || wait) return 1;
  const int all = std::min(microbatches_a_rank * (ranks - 1), most_microbatches - microbatches);
  return std::max(1, (all + microbatches - 1) / microbatches);
}

Schedule compose(const Crossing& crossing, const Policy& policy, int microbatches, int steps) {
  check_seats(crossing, microbatches * steps);
  const Seats seats = antichain::seats(crossing.ranks, microbatches * steps, steps);
  Schedule schedule = complete(policy.compute_orders(seats), crossing, seats, microbatches * steps, steps);
  for (int s = 0; policy.asynchronous() && s < crossing.stages(); ++s)
    schedule.delays.push_back(policy.delay(s, crossing.stages()));
  schedule.stashes = policy.stashes, schedule.predict = policy.predict;
  return schedule;
}

Schedule make_schedule(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
                       int steps) {
  validate(plan, profile);
  const Schedule schedule = compose(crossing_of(profile, plan), policy, microbatches, steps);
  validate(schedule, profile, plan);
  return schedule;
}

Schedule make_flowing_schedule(const Profile& profile, const Plan& plan, const Policy& policy,
                               int microbatches) {
  validate(plan, profile);
  return make_schedule(profile, plan, policy, microbatches,
                       steps_in_a_row(policy, crossing_of(profile, plan), microbatches));
}

}  // namespace antichain
