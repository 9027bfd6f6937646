#include "pipeline/simulate/message_order.h"

#include <algorithm>
#include <tuple>

#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/simulate/action_seconds.h"

namespace antichain {
namespace {

// Depths finds the depths of ranks and exchanges in one pass over the schedule.
class Depths {
 public:
  explicit Depths(const Schedule& schedule) : now_(schedule.ranks.size(), 0) {
    for (const auto& actions : schedule.ranks) after_.emplace_back(actions.size(), 0);
  }
  int meet(const std::vector<ActionPlace>& places) {
    int depth = 0;
    for (const ActionPlace& place : places) depth = std::max(depth, now_[size_t(place.rank)]);
    for (const ActionPlace& place : places) now_[size_t(place.rank)] = depth + 1;
    return depth + 1;
  }
  int receive(int rank, int freed_by, const ActionPlace& send) {
    int depth = after_[size_t(send.rank)][size_t(send.index)];
    if (freed_by >= 0) depth = std::max(depth, after_[size_t(rank)][size_t(freed_by)]);
    now_[size_t(rank)] = std::max(now_[size_t(rank)], depth + 1);
    return depth + 1;
  }
  void pass(int rank, int index) { after_[size_t(rank)][size_t(index)] = now_[size_t(rank)]; }

 private:
  std::vector<int> now_;                 // per rank
  std::vector<std::vector<int>> after_;  // per action
};

}  // namespace

std::vector<Exchange> message_order(const Program& program, const Plan& plan, const Profile& profile,
                                    const Cluster& cluster) {
  const Schedule& schedule = *program.schedule;
  const Timeline timeline = simulate(schedule, plan, profile, cluster);
  std::vector<size_t> first_event;
  for (size_t r = 0, at = 0; r < schedule.ranks.size(); at += schedule.ranks[r++].size())
    first_event.push_back(at);
  const auto event = [&](int r, int i) -> const Event& {
    return timeline.events[first_event[size_t(r)] + size_t(i)];
  };
  const Partners partners = match_messages(schedule);
  Depths depths(schedule);
  std::vector<Exchange> order;
  const auto visit = [&](int r, int i) {
    const Action& a = schedule.ranks[size_t(r)][size_t(i)];
    if (a.verb == Verb::recv) {
      const ActionPlace send{a.peer, partners.of[size_t(r)][size_t(i)]};
      const int freeing = program.ranks[size_t(r)].instructions[size_t(i)].freed_by;
      const double free_s = freeing >= 0 ? event(r, freeing).end_s : 0;
      order.push_back(
          {std::max(event(r, i).delivered_s, free_s), depths.receive(r, freeing, send), {send, {r, i}}});
    }
    depths.pass(r, i);
  };
  const ActionSeconds seconds(plan, profile, cluster, schedule);
  const auto meet = [&](const std::vector<ActionPlace>& places) {
    const ActionPlace& any = places[0];
    if (schedule.ranks[size_t(any.rank)][size_t(any.index)].verb == Verb::vote) return;  // no tensors
    const double half_s = seconds(any.rank, schedule.ranks[size_t(any.rank)][size_t(any.index)]) / 2;
    double scattered_s = event(any.rank, any.index).delivered_s - half_s, gathered_s = 0;
    for (const auto& [r, i] : places) {
      const auto& actions = schedule.ranks[size_t(r)];
      const int last = last_gradient(actions, i);
      scattered_s = std::max(scattered_s, event(r, last).start_s);  // whatever was rounded
      gathered_s = std::max(gathered_s, event(r, i).end_s);
    }
    order.push_back({scattered_s, depths.meet(places), places, true});
    order.push_back({gathered_s, depths.meet(places), places});
  };
  check_all_reached(schedule, walk(schedule, partners, visit, meet));
  std::ranges::sort(order, {}, [](const Exchange& e) {
    return std::tuple(e.done_s, e.depth, e.places[0].rank, e.places[0].index, !e.scatters);
  });
  return order;
}

std::vector<std::vector<int>> issue_order(const std::vector<Exchange>& order, int ranks) {
  std::vector<std::vector<int>> issued(static_cast<size_t>(ranks));
  for (const Exchange& exchange : order)
    for (const ActionPlace& place : exchange.places) issued[size_t(place.rank)].push_back(place.index);
  return issued;
}

}  // namespace antichain
