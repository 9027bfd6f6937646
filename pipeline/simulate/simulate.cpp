// This file gives a time to each action of a schedule.
//
// Sends are posted, and every directed pair of ranks delivers in posting order. So a rank's times depend only
// on its own list and on messages already sent: one pass over the schedule is the whole simulation, without
// an event queue.
#include "pipeline/simulate/simulate.h"

#include <algorithm>
#include <map>

#include "pipeline/schedule/happens_before.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/simulate/action_seconds.h"

namespace antichain {
namespace {

// Links between ranks: each directed pair carries one message at a time, in posting order.
class Links {
 public:
  Links(const Plan& plan, const Cluster& cluster)
      : cluster_(cluster), ranks_(size_t(plan.ranks())), free_s_(ranks_ * ranks_, 0) {
    for (size_t r = 0; r < ranks_; ++r) devices_.push_back(plan.device_of(int(r)));
  }
  // Returns when the message has arrived.
  double post(int from, int to, double now_s, int64_t bytes) {
    double& free_s = free_s_[size_t(from) * ranks_ + size_t(to)];
    free_s =
        std::max(free_s, now_s) + cluster_.link(devices_[size_t(from)], devices_[size_t(to)]).seconds(bytes);
    return free_s;
  }
  const std::vector<double>& free_s() const { return free_s_; }

 private:
  const Cluster& cluster_;
  const size_t ranks_;
  std::vector<int> devices_;    // per rank
  std::vector<double> free_s_;  // when a pair's link is free again
};

// All-reduces begin while their ranks still compute: a bucket follows the one before on the link among the
// stage's replicas, once its gradients are there on all of them.
class AllReduces {
 public:
  AllReduces(const Schedule& schedule, const ActionSeconds& seconds)
      : schedule_(schedule), seconds_(seconds), last_(schedule.ranks.size()) {
    for (size_t r = 0; r < schedule.ranks.size(); ++r)
      for (const Action& a : schedule.ranks[r])
        if (a.verb == Verb::reduce && !of(r, a.stage))
          last_[r].push_back({a.stage, last_gradient(schedule.ranks[r], a.stage)});
  }
  void began(int rank, int index, double now_s) {
    for (Last& last : last_[size_t(rank)])
      if (last.index == index) last.begin_s = now_s;
  }
  struct Span {
    double begin_s = 0, end_s = 0;
  };
  // Returns when the bucket is added up.
  Span span(const std::vector<ActionPlace>& places) {
    const Action& reduce = schedule_.ranks[size_t(places[0].rank)][size_t(places[0].index)];
    double& free_s = free_s_[reduce.stage];
    for (const auto& [rank, index] : places) {
      const Last& last = *of(size_t(rank), reduce.stage);
      if (last.index < 0) continue;
      const Action& backward = schedule_.ranks[size_t(rank)][size_t(last.index)];
      free_s = std::max(free_s, last.begin_s + seconds_.passed_s(rank, backward, reduce));
    }
    const double begin_s = free_s;
    return {begin_s, free_s += seconds_(places[0].rank, reduce)};
  }

 private:
  // The backward that completes a rank's gradients of a stage.
  struct Last {
    int stage = 0, index = -1;
    double begin_s = 0;
  };
  const Last* of(size_t rank, int stage) const {
    const auto found = std::ranges::find(last_[rank], stage, &Last::stage);
    return found == last_[rank].end() ? nullptr : &*found;
  }
  const Schedule& schedule_;
  const ActionSeconds& seconds_;
  std::vector<std::vector<Last>> last_;  // per rank, of stages with replicas
  std::map<int, double> free_s_;         // per stage: when the link is free again
};

// A Player executes the schedule in simulated time, again and again: each step begins on the clocks that the
// one before left behind.
class Player {
 public:
  Player(const Schedule& schedule, const Plan& plan, const Profile& profile, const Cluster& cluster,
         const ActionSeconds& seconds)
      : schedule_(schedule),
        plan_(plan),
        profile_(profile),
        cluster_(cluster),
        seconds_(seconds),
        partners_(match_messages(schedule)),
        links_(plan, cluster),
        all_reduces_(schedule, seconds),
        now_s_(schedule.ranks.size(), 0) {
    for (const auto& actions : schedule.ranks) there_s_.emplace_back(actions.size());
  }

  // Calls record(rank, index, start, end, delivered) for every action of the step, in order on each rank.
  template <class Record>
  void play(Record record) {
    // These belong to the last meeting, whose places are visited next: when its all-reduce begins, and the
    // last replica came.
    double begin_s = 0, met_s = 0;
    const auto visit = [&](int r, int i) {
      const Action& action = schedule_.ranks[r][i];
      const bool together = joins(action.verb);
      const double start_s = together ? std::max(now_s_[r], begin_s) : now_s_[r];
      const double end_s = together                    ? std::max({start_s, there_s_[r][i], met_s})
                           : action.verb == Verb::recv ? std::max(start_s, there_s_[r][i])
                                                       : start_s + seconds_(r, action);
      all_reduces_.began(r, i, start_s);
      if (action.verb == Verb::send)
        there_s_[action.peer][partners_.of[r][i]] =
            links_.post(r, action.peer, start_s, profile_.nodes[action.message.tensor].cost.output_bytes);
      now_s_[r] = end_s;
      record(r, i, start_s, end_s, there_s_[r][i]);
    };
    const auto meet = [&](const std::vector<ActionPlace>& places) {
      if (schedule_.ranks[size_t(places[0].rank)][size_t(places[0].index)].verb == Verb::vote) {
        begin_s = met_s = 0;
        for (const auto& [r, i] : places) met_s = std::max(met_s, now_s_[r] + vote_s(plan_, cluster_, r, 0));
        for (const auto& [r, i] : places) there_s_[r][i] = met_s + vote_s(plan_, cluster_, 0, r);
        return;
      }
      const auto span = all_reduces_.span(places);
      begin_s = span.begin_s, met_s = 0;
      for (const auto& [r, i] : places) {
        met_s = std::max(met_s, now_s_[r]);  // each adds up its part, so all come to it
        there_s_[r][i] = span.end_s;
      }
    };
    check_all_reached(schedule_, walk(schedule_, partners_, visit, meet));
  }

  double last_end_s() const { return std::ranges::max(now_s_); }

  double period_s(double step_s) {
    return steady_period_s(step_s, [&] {
      play([](int, int, double, double, double) {});
      std::vector<double> clocks = now_s_;
      clocks.insert(clocks.end(), links_.free_s().begin(), links_.free_s().end());
      return clocks;
    });
  }

 private:
  const Schedule& schedule_;
  const Plan& plan_;
  const Profile& profile_;
  const Cluster& cluster_;
  const ActionSeconds& seconds_;
  const Partners partners_;
  Links links_;
  AllReduces all_reduces_;
  std::vector<double> now_s_;                 // per rank
  std::vector<std::vector<double>> there_s_;  // when a recv's message arrives, or a reduce's sums
};

Pace pace_of(const Profile& profile, const Plan& plan, const Policy& policy, int microbatches,
             const Cluster& cluster, bool even, Steps steps) {
  const Schedule schedule = compose(crossing_of(profile, plan), policy, microbatches);
  ActionSeconds seconds(plan, profile, cluster, schedule);
  if (even) seconds.make_even();
  Player player(schedule, plan, profile, cluster, seconds);
  player.play([](int, int, double, double, double) {});
  const double step_s = player.last_end_s();
  return {step_s, steps == Steps::apart ? step_s : player.period_s(step_s)};
}

}  // namespace

Timeline simulate(const Schedule& schedule, const Plan& plan, const Profile& profile, const Cluster& cluster,
                  Steps steps) {
  validate(schedule, profile, plan);
  const ActionSeconds seconds(plan, profile, cluster, schedule);
  const size_t ranks = schedule.ranks.size();
  Player player(schedule, plan, profile, cluster, seconds);
  Timeline timeline{.busy_s = std::vector<double>(ranks, 0)};
  std::vector<std::vector<Event>> events(ranks);
  const auto record = [&](int r, int i, double start_s, double end_s, double delivered_s) {
    events[r].push_back({r, schedule.ranks[r][i], start_s, end_s, delivered_s});
  };
  player.play(record);
  timeline.step_s = timeline.period_s = player.last_end_s();
  if (steps == Steps::overlapped && learns(schedule)) timeline.period_s = player.period_s(timeline.step_s);
  if (timeline.period_s < timeline.step_s) {
    for (auto& of_rank : events) of_rank.clear();
    player.play(record);
  }
  for (auto& of_rank : events) timeline.events.insert(timeline.events.end(), of_rank.begin(), of_rank.end());
  for (const Event& e : timeline.events)
    if (e.action.verb != Verb::reduce) timeline.busy_s[size_t(e.rank)] += seconds(e.rank, e.action);
  if (timeline.period_s < timeline.step_s) begin_at_zero(timeline);
  return timeline;
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
