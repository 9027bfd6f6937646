// Sends are posted here, and every directed pair of ranks delivers in posting order. So a message waits for
// nothing at its receiver, and any order of transits will do in which a send comes before its recv.
#include "pipeline/simulate/simulate.h"

#include <array>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/simulate/player.h"

namespace antichain {
namespace {

// The all-reduces of a stage follow one another on the link among its replicas, and begin while these still
// compute.
Player::Transits links(const Schedule& schedule, const Plan& plan, const Profile& profile,
                       const Cluster& cluster, const ActionSeconds& seconds) {
  std::vector<int> devices;
  for (int r = 0; r < plan.ranks(); ++r) devices.push_back(plan.device_of(r));
  return [&, devices, partners = match_messages(schedule)](Player& player) {
    const auto visit = [&](int r, int i) {
      const Action& a = schedule.ranks[size_t(r)][size_t(i)];
      if (a.verb != Verb::send) return;
      const std::array ends = {
          TransitEnd{.rank = r, .needs = i - 1, .queue = r * int(devices.size()) + a.peer},
          TransitEnd{.rank = a.peer, .waits = partners.of[size_t(r)][size_t(i)]}};
      const Link& link = cluster.link(devices[size_t(r)], devices[size_t(a.peer)]);
      player.carry_out(ends, link.seconds(message_bytes(profile, a.message)));
    };
    const auto meet = [&](const std::vector<ActionPlace>& places) {
      const Action& joint = schedule.ranks[size_t(places[0].rank)][size_t(places[0].index)];
      if (joint.verb == Verb::vote) return;  // it is no transit
      std::vector<TransitEnd> ends;
      for (const auto& [r, i] : places) {
        const auto& actions = schedule.ranks[size_t(r)];
        const int last = last_gradient(actions, i);
        ends.push_back({r, last, joint.stage, i});
        if (last >= 0) ends.back().passed_s = seconds.passed_s(r, actions[size_t(last)], joint);
      }
      player.carry_out(ends, seconds(places[0].rank, joint), true);
    };
    check_all_reached(schedule, walk(schedule, partners, visit, meet));
  };
}

Pace pace_of(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
             const Cluster& cluster, bool even, Steps steps) {
  const Crossing crossing = crossing_of(profile, plan);
  const Schedule schedule =
      compose(crossing, policy, microbatches, steps_in_a_row(policy, crossing, microbatches));
  ActionSeconds seconds(plan, profile, cluster, schedule);
  if (even) seconds.make_even();
  Player player(schedule, plan, cluster, seconds, links(schedule, plan, profile, cluster, seconds));
  const double step_s = player.play();
  const double period_s = steps == Steps::apart ? step_s : player.period_s(step_s);
  return {step_s / schedule.steps, period_s / schedule.steps};
}

}  // namespace

Timeline simulate(const Schedule& schedule, const Plan& plan, const Profile& profile, const Cluster& cluster,
                  Steps steps) {
  validate(schedule, profile, plan);
  const ActionSeconds seconds(plan, profile, cluster, schedule);
  return Player(schedule, plan, cluster, seconds, links(schedule, plan, profile, cluster, seconds))
      .timeline(learns(schedule) ? steps : Steps::apart);
}

double step_s(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
              const Cluster& cluster) {
  return pace_of(profile, plan, policy, microbatches, cluster, false, Steps::apart).step_s;
}

Pace pace(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
          const Cluster& cluster, Steps steps) {
  return pace_of(profile, plan, policy, microbatches, cluster, false, steps);
}

Pace even_pace(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
               const Cluster& cluster, Steps steps) {
  return pace_of(profile, plan, policy, microbatches, cluster, true, steps);
}

double one_device_step_s(const Profile& profile, int microbatches) {
  double compute_s = 2 * profile.overhead_s, update_s = 0;
  for (const ProfileNode& node : profile.nodes) {
    compute_s += node.cost.compute_s();
    update_s += node.cost.update_s;
  }
  return microbatches * compute_s + update_s;
}

std::string_view category_of(Verb verb) {
  switch (verb) {
    case Verb::load:
      return "load";
    case Verb::recv:
      return "recv";
    case Verb::forward:
      return "forward";
    case Verb::backward:
    case Verb::backward_input:
    case Verb::backward_weight:
      return "backward";
    case Verb::send:
      return "send";
    case Verb::reduce:
      return "reduce";
    case Verb::vote:
      return "vote";
    case Verb::update:
      break;
  }
  return "step";  // an update's category in the trace files that users have
}

}  // namespace antichain
