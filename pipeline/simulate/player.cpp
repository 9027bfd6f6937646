#include "pipeline/simulate/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/error.h"

namespace antichain {

Player::Player(const Schedule& schedule, const Plan& plan, const Cluster& cluster,
               const ActionSeconds& seconds, Transits transits)
    : schedule_(schedule),
      plan_(plan),
      cluster_(cluster),
      seconds_(seconds),
      transits_(std::move(transits)),
      now_s_(schedule.ranks.size(), 0),
      next_(schedule.ranks.size(), 0),
      times_(schedule.ranks.size()) {}

double Player::play() {
  std::ranges::fill(next_, 0);
  for (size_t r = 0; r < times_.size(); ++r) times_[r].assign(schedule_.ranks[r].size(), {});
  transits_(*this);
  for (size_t r = 0; r < times_.size(); ++r) go_to(int(r), int(times_[r].size()));
  return std::ranges::max(now_s_);
}

void Player::carry_out(std::span<const TransitEnd> ends, double seconds, bool meet) {
  std::vector<double>& free_s = meet ? free_to_meet_s_ : free_s_;
  double begin_s = 0, met_s = 0;
  for (const TransitEnd& end : ends) {
    if (end.queue >= int(free_s.size())) free_s.resize(size_t(end.queue) + 1, 0);
    begin_s = std::max({begin_s, ready_s(end), end.queue < 0 ? 0 : free_s[size_t(end.queue)]});
    if (meet) go_to(end.rank, end.waits);
    if (meet) met_s = std::max(met_s, now_s_[size_t(end.rank)]);
  }
  const double end_s = begin_s + seconds;
  for (const TransitEnd& end : ends) {
    if (end.queue >= 0) free_s[size_t(end.queue)] = end_s;
    if (end.waits >= 0) times_[size_t(end.rank)][size_t(end.waits)] = {meet ? begin_s : 0, met_s, end_s};
  }
}

double Player::ready_s(const TransitEnd& end) {
  if (end.needs < 0) return 0;
  go_to(end.rank, end.needs + 1);
  const Times& needed = times_[size_t(end.rank)][size_t(end.needs)];
  return end.passed_s < 0 ? needed.end_s : needed.start_s + end.passed_s;
}

// Executes the rank's actions before `index`.
void Player::go_to(int r, int index) {
  double& now_s = now_s_[size_t(r)];
  for (int& next = next_[size_t(r)]; next < index; ++next) {
    const Action& a = schedule_.ranks[size_t(r)][size_t(next)];
    Times& its = times_[size_t(r)][size_t(next)];
    const bool waits = a.verb == Verb::recv || joins(a.verb);
    if (a.verb == Verb::vote && its.there_s < 0) meet_for_vote();
    if (waits && its.there_s < 0)
      throw Error(fmt::format("the order of messages lets rank {} wait forever in {}", r, print(a)));
    its.start_s = std::max(now_s, its.start_s);
    its.end_s = waits ? std::max({its.start_s, its.there_s, its.end_s}) : its.start_s + seconds_(r, a);
    now_s = its.end_s;
  }
}

// Brings every rank to its vote. Words that need no bandwidth take no queue.
void Player::meet_for_vote() {
  std::vector<int> votes;
  for (size_t r = 0; r < next_.size(); ++r) {
    const auto& actions = schedule_.ranks[r];
    votes.push_back(int(std::ranges::find(actions, Verb::vote, &Action::verb) - actions.begin()));
    times_[r][size_t(votes[r])].there_s = 0;  // so that no rank calls for it again
  }
  double met_s = 0;
  for (int r = 0; r < int(votes.size()); ++r) {
    go_to(r, votes[size_t(r)]);
    met_s = std::max(met_s, now_s_[size_t(r)] + vote_s(plan_, cluster_, r, 0));
  }
  for (int r = 0; r < int(votes.size()); ++r)
    times_[size_t(r)][size_t(votes[size_t(r)])].there_s = met_s + vote_s(plan_, cluster_, 0, r);
}

double Player::period_s(double step_s) {
  return steady_period_s(step_s, [&] {
    play();
    std::vector<double> clocks = now_s_;
    clocks.insert(clocks.end(), free_s_.begin(), free_s_.end());
    return clocks;
  });
}

Timeline Player::played() const {
  Timeline timeline;
  for (size_t r = 0; r < times_.size(); ++r) {
    double& busy_s = timeline.busy_s.emplace_back(0);
    for (size_t i = 0; i < times_[r].size(); ++i) {
      const Action& a = schedule_.ranks[r][i];
      const Times& its = times_[r][i];
      timeline.events.push_back({int(r), a, its.start_s, its.end_s, std::max(0., its.there_s)});
      if (!joins(a.verb)) busy_s += seconds_(int(r), a);
    }
  }
  return timeline;
}

Timeline Player::timeline(Steps steps) {
  const double step_s = play();
  Timeline timeline = played();
  const double period = steps == Steps::apart ? step_s : period_s(step_s);
  if (period < step_s) play(), timeline = played();
  timeline.step_s = step_s, timeline.period_s = period;
  if (period < step_s) begin_at_zero(timeline);
  share_out(timeline, schedule_);
  return timeline;
}

}  // namespace antichain
