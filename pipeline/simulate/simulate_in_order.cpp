// Simulates exchanges that meet in the order of their lanes: a message waits for its receiver's buffer, too.
#include <map>
#include <tuple>

#include "pipeline/schedule/lane.h"
#include "pipeline/simulate/message_order.h"
#include "pipeline/simulate/player.h"

namespace antichain {

Timeline simulate_in_order(const Program& program, const Plan& plan, const Profile& profile,
                           const Cluster& cluster, const std::vector<Exchange>& order, const LaneOf& lane_of,
                           Steps steps) {
  const Schedule& schedule = *program.schedule;
  const ActionSeconds seconds(plan, profile, cluster, schedule);
  // Queues of each rank are numbered: lanes, and links from one rank to another.
  std::map<std::tuple<int, int, int>, int> queues;
  const auto carry_out = [&](Player& player, const Exchange& exchange) {
    const int from = exchange.places[0].rank, to = exchange.places[1].rank;
    const Action& a = schedule.ranks[size_t(from)][size_t(exchange.places[0].index)];
    const bool reduces = a.verb == Verb::reduce;
    const int lane = lane_of(from, to, reduces ? Flow::gradient : a.message.flow);
    std::vector<TransitEnd> ends;
    for (const auto& [r, i] : exchange.places) {
      const auto queue = lane == no_lane ? std::tuple(r, from, to) : std::tuple(r, -1, lane);
      const Instruction& own = program.ranks[size_t(r)].instructions[size_t(i)];
      TransitEnd& end = ends.emplace_back(TransitEnd{.rank = r, .needs = i - 1, .waits = i});
      end.queue = queues.try_emplace(queue, int(queues.size())).first->second;
      if (own.verb == Verb::recv) end.needs = own.freed_by;
      if (exchange.scatters) {
        const auto& actions = schedule.ranks[size_t(r)];
        end.needs = last_gradient(actions, i);
        end.passed_s = seconds.passed_s(r, actions[size_t(end.needs)], own);
      }
      if (exchange.scatters || own.verb == Verb::send) end.waits = -1;
    }
    const Link& link = cluster.link(plan.device_of(from), plan.device_of(to));
    player.carry_out(ends, reduces ? seconds(from, a) / 2  // for either half
                                   : link.seconds(message_bytes(profile, a.message)));
  };
  const auto all = [&](Player& player) {
    for (const Exchange& exchange : order) carry_out(player, exchange);
  };
  return Player(schedule, plan, cluster, seconds, all).timeline(steps);
}

}  // namespace antichain
