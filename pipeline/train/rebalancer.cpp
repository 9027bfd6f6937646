#include "pipeline/train/rebalancer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

// Returns the mean of what is neither the least nor the most.
double middle(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return std::accumulate(seconds.begin() + 1, seconds.end() - 1, 0.0) / double(seconds.size() - 2);
}

}  // namespace

std::string describe(const RebalanceRule& rule) {
  return fmt::format(
      "nodes move where ranks' speeds differ from the plan's by more than {:.0f} % for {} steps, a new plan "
      "shortens a step by {:.0f} %, and the steps left save {:.2g} times the pause; at once back if they do "
      "not get shorter",
      rule.gain * 100, rule.steps(), rule.gain * 100, rule.safety);
}

Rebalancer::Rebalancer(Division now, Planner planner, Listener listener, const RebalanceRule& rule)
    : rule_(rule),
      planner_(std::move(planner)),
      listener_(std::move(listener)),
      now_(std::move(now)),
      known_(now_.busy_s.size(), 1.0) {}

std::optional<Division> Rebalancer::see(const StepMeasure& m) {
  if (wanted_ || m.step < rests_until_ || std::exchange(first_, false)) return {};
  recent_.push_back({m.seconds, m.busy_s});
  if (recent_.size() > size_t(rule_.steps())) recent_.pop_front();
  if (++seen_ % rule_.window != 0 || seen_ < rule_.steps()) return {};
  return wanted_ = former_ ? judge(m) : look(m.left);
}

// Returns by how much faster each rank computed than predicted.
std::vector<double> Rebalancer::speeds(int first_window, int windows) const {
  std::vector<double> speeds;
  for (size_t rank = 0; rank < now_.busy_s.size(); ++rank) {
    std::vector<double> busy_s;
    for (int i = first_window * rule_.window; i < (first_window + windows) * rule_.window; ++i)
      busy_s.push_back(recent_[size_t(i)].busy_s[rank]);
    const double measured_s = middle(std::move(busy_s));
    speeds.push_back(measured_s > 0 && now_.busy_s[rank] > 0 ? now_.busy_s[rank] / measured_s : 1);
  }
  return speeds;
}

// Returns which ranks are slower, or faster, in every window, against the median rank and what is known.
std::vector<bool> Rebalancer::others() const {
  std::vector<bool> slower(known_.size(), true), faster = slower;
  for (int window = 0; window < rule_.windows; ++window) {
    std::vector<double> s = speeds(window, 1);
    for (size_t rank = 0; rank < s.size(); ++rank) s[rank] /= known_[rank];
    const double usual = median(s);
    for (size_t rank = 0; rank < s.size(); ++rank) {
      slower[rank] = slower[rank] && s[rank] * (1 + rule_.gain) < usual;
      faster[rank] = faster[rank] && s[rank] > usual * (1 + rule_.gain);
    }
  }
  for (size_t rank = 0; rank < slower.size(); ++rank) slower[rank] = slower[rank] || faster[rank];
  return slower;
}

std::optional<Division> Rebalancer::look(int64_t steps_left) {
  const std::vector<bool> differs = others();
  if (std::ranges::find(differs, true) == differs.end()) return {};
  const double begin_s = now_s();
  known_ = speeds(1, rule_.windows - 1);  // in the first window they may have changed
  std::vector<double> s = known_;
  const double usual = median(s);
  for (size_t rank = 0; rank < s.size(); ++rank)
    s[rank] = (differs[rank] ? s[rank] : usual) * now_.speeds[rank];
  Planned planned;
  try {
    planned = planner_(now_, s);
  } catch (const Error&) {  // nothing fits that the ranks' memory has room for
    return {};
  }
  std::vector<double> seconds;
  for (const Recent& step : recent_) seconds.push_back(step.seconds);
  const double before_s = median(std::move(seconds)), gain_s = planned.now.pace_s - planned.best.pace_s;
  const double pause_s = report_.pause_s > 0 ? report_.pause_s : 2 * before_s;
  if (gain_s < rule_.gain * planned.now.pace_s || gain_s * double(steps_left) < rule_.safety * pause_s ||
      !why_not_moved(now_.plan, planned.best.plan).empty())
    return {};
  report_ = {.speeds = known_,
             .before_s = before_s,
             .predicted_before_s = planned.now.pace_s,
             .predicted_after_s = planned.best.pace_s,
             .planning_s = now_s() - begin_s};
  former_ = std::move(planned.now);
  return std::move(planned.best);
}

// What happens to the ranks after a move is not its fault: all may get slower, or some of them, for which
// there may be another plan.
std::optional<Division> Rebalancer::judge(const StepMeasure& m) {
  std::vector<double> seconds;
  for (const Recent& recent : recent_) seconds.push_back(recent.seconds);
  report_.after_s = median(std::move(seconds));
  std::optional<Division> former = std::exchange(former_, std::nullopt);
  const double usual = std::min(1.0, median(speeds(0, rule_.windows)));
  const std::vector<bool> differs = others();
  const bool changed = std::ranges::find(differs, true) != differs.end();
  if (report_.after_s * usual >= report_.before_s && !changed) return former;
  report_.what = RebalanceReport::What::kept;
  report_.step = m.step + 1;
  listener_(report_);
  return changed ? look(m.left) : std::nullopt;
}

void Rebalancer::moved(const MoveReport& move) {
  now_ = std::move(*wanted_);
  wanted_.reset();
  recent_.clear();
  seen_ = 0;
  first_ = true;
  known_.assign(known_.size(), 1.0);
  report_.step = move.step;
  report_.moved = move.moved;
  report_.pause_s = move.pause_s;
  report_.plan = plan_hash(now_.plan);
  report_.what = former_ ? RebalanceReport::What::moved : RebalanceReport::What::taken_back;
  if (!former_) rests_until_ = move.step + rule_.rest;
  listener_(report_);
}

}  // namespace antichain
