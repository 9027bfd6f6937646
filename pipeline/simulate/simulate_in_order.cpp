// Simulates exchanges one after the other. Before each exchange, its ranks advance along their lists as far
// as it needs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "framework/error.h"
#include "pipeline/schedule/gradient_buckets.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/simulate/action_seconds.h"
#include "pipeline/simulate/message_order.h"

namespace antichain {
namespace {

class InOrder {
 public:
  InOrder(const Program& program, const Plan& plan, const Profile& profile, const Cluster& cluster,
          const LaneOf& lane_of)
      : program_(program),
        schedule_(*program.schedule),
        plan_(plan),
        profile_(profile),
        cluster_(cluster),
        lane_of_(lane_of),
        seconds_(plan, profile, cluster, schedule_),
        ranks_(program.ranks.size()) {}

  // As in simulate(), the timeline is that of the first step unless overlapping gains something.
  Timeline run(const std::vector<Exchange>& order, Steps steps) {
    play(order);
    Timeline timeline = played();
    const double step_s = std::ranges::max(clocks());
    timeline.step_s = timeline.period_s = step_s;
    if (steps == Steps::apart) return timeline;
    const double period_s = steady_period_s(step_s, [&] { return play(order), clocks(); });
    if (period_s >= step_s) return timeline;
    play(order);
    timeline = played();
    timeline.step_s = step_s, timeline.period_s = period_s;
    begin_at_zero(timeline);
    return timeline;
  }

 private:
  // One more step, on the clocks that the one before left behind.
  void play(const std::vector<Exchange>& order) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].exchange_end_s.assign(schedule_.ranks[r].size(), -1);
      ranks_[r].events.clear();
      ranks_[r].busy_s = 0;
    }
    for (const Exchange& exchange : order) carry_out(exchange);
    for (size_t r = 0; r < ranks_.size(); ++r) go_to(int(r), int(schedule_.ranks[r].size()));
  }
  Timeline played() const {
    Timeline timeline;
    for (const RankClock& rank : ranks_) {
      timeline.events.insert(timeline.events.end(), rank.events.begin(), rank.events.end());
      timeline.busy_s.push_back(rank.busy_s);
    }
    return timeline;
  }
  std::vector<double> clocks() const {
    std::vector<double> clocks;
    for (const RankClock& rank : ranks_) {
      clocks.push_back(rank.now_s);
      for (const auto& [queue, free_s] : rank.queue_s) clocks.push_back(free_s);
    }
    return clocks;
  }

  struct RankClock {
    std::vector<Event> events;                      // one per action done
    std::vector<double> exchange_end_s;             // of a recv or reduce that is done; −1
    std::map<std::pair<int, int>, double> queue_s;  // when each is free
    double now_s = 0, busy_s = 0;
  };

  const Action& action(const ActionPlace& at) const {
    return schedule_.ranks[size_t(at.rank)][size_t(at.index)];
  }
  double seconds_of(int rank, const Action& a) const { return seconds_(rank, a); }

  // Returns when the rank is ready for the exchange: it has reached it, and the buffer has been freed. For
  // the first half of an all-reduce its last backward has passed the bucket.
  double ready_s(const ActionPlace& at, bool scatters) {
    const RankClock& rank = ranks_[size_t(at.rank)];
    if (scatters) {
      const int last = last_gradient(schedule_.ranks[size_t(at.rank)], action(at).stage);
      go_to(at.rank, last + 1);
      const Event& backward = rank.events[size_t(last)];
      return backward.start_s + seconds_.passed_s(at.rank, backward.action, action(at));
    }
    const Instruction& own = program_.ranks[size_t(at.rank)].instructions[size_t(at.index)];
    const int needed = own.verb == Verb::recv ? own.freed_by + 1 : at.index;
    go_to(at.rank, needed);
    return needed > 0 ? rank.events[size_t(needed) - 1].end_s : 0;
  }

  // Returns the queue of the exchange on each of its ranks: a lane, or the link from one rank to the other.
  std::pair<int, int> queue_of(const Exchange& exchange) const {
    const Action& a = action(exchange.places[0]);
    const int from = exchange.places[0].rank, to = exchange.places[1].rank;
    const int lane = lane_of_(from, to, a.verb == Verb::reduce ? Flow::gradient : a.message.flow);
    return lane == no_lane ? std::pair(from, to) : std::pair(-1, lane);
  }

  void carry_out(const Exchange& exchange) {
    const auto queue = queue_of(exchange);
    double begin_s = 0;
    for (const ActionPlace& place : exchange.places)
      begin_s =
          std::max({begin_s, ready_s(place, exchange.scatters), ranks_[size_t(place.rank)].queue_s[queue]});
    const double end_s = begin_s + duration_s(exchange);
    for (const ActionPlace& place : exchange.places) {
      ranks_[size_t(place.rank)].queue_s[queue] = end_s;
      ranks_[size_t(place.rank)].exchange_end_s[size_t(place.index)] = end_s;
    }
  }

  double duration_s(const Exchange& exchange) const {
    const Action& a = action(exchange.places[0]);
    if (a.verb == Verb::reduce) return seconds_of(exchange.places[0].rank, a) / 2;  // for either half
    const int from = plan_.device_of(exchange.places[0].rank), to = plan_.device_of(a.peer);
    return cluster_.link(from, to).seconds(profile_.nodes[size_t(a.message.tensor)].cost.output_bytes);
  }

  // Executes the rank's actions before `index`.
  void go_to(int r, int index) {
    RankClock& rank = ranks_[size_t(r)];
    for (int i = int(rank.events.size()); i < index; ++i) {
      const Action& a = action({r, i});
      if (a.verb == Verb::vote && rank.exchange_end_s[size_t(i)] < 0) meet_for_vote();
      const bool waits = a.verb == Verb::recv || joins(a.verb);
      const double there_s = rank.exchange_end_s[size_t(i)], start_s = rank.now_s;
      if (waits && there_s < 0)
        throw Error(fmt::format("the order of messages lets rank {} wait forever in {}", r, print(a)));
      rank.now_s = waits ? std::max(start_s, there_s) : start_s + seconds_of(r, a);
      if (!waits) rank.busy_s += seconds_of(r, a);
      rank.events.push_back({r, a, start_s, rank.now_s, waits ? there_s : 0});
    }
  }

  // Brings every rank to its vote. Words that need no bandwidth take no lane.
  void meet_for_vote() {
    std::vector<size_t> votes;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& actions = schedule_.ranks[r];
      votes.push_back(size_t(std::ranges::find(actions, Verb::vote, &Action::verb) - actions.begin()));
      ranks_[r].exchange_end_s[votes[r]] = 0;  // so that no rank calls for it again
    }
    double met_s = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      go_to(int(r), int(votes[r]));
      met_s = std::max(met_s, ranks_[r].now_s + vote_s(plan_, cluster_, int(r), 0));
    }
    for (size_t r = 0; r < ranks_.size(); ++r)
      ranks_[r].exchange_end_s[votes[r]] = met_s + vote_s(plan_, cluster_, 0, int(r));
  }

  const Program& program_;
  const Schedule& schedule_;
  const Plan& plan_;
  const Profile& profile_;
  const Cluster& cluster_;
  const LaneOf& lane_of_;
  const ActionSeconds seconds_;
  std::vector<RankClock> ranks_;
};

}  // namespace

Timeline simulate_in_order(const Program& program, const Plan& plan, const Profile& profile,
                           const Cluster& cluster, const std::vector<Exchange>& order, const LaneOf& lane_of,
                           Steps steps) {
  return InOrder(program, plan, profile, cluster, lane_of).run(order, steps);
}

}  // namespace antichain
