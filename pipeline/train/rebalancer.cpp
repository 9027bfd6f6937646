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
      known_(now_.busy_s.size(), 1.0),
      planning_s_(now_.plan.planning_s) {}

std::optional<Division> Rebalancer::see(const StepMeasure& m) {
  step_ = m.step;
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

// Returns by how much a step would be shorter if all ranks computed equally long, which no plan surpasses.
double Rebalancer::most_gain_s(double step_s) const {
  const std::vector<double> speed = speeds(1, rule_.windows - 1);
  double work = 0, speed_of_all = 0;
  for (size_t rank = 0; rank < speed.size(); ++rank) {
    work += now_.busy_s[rank] * now_.speeds[rank];
    speed_of_all += speed[rank] * now_.speeds[rank];
  }
  return step_s - work / speed_of_all;
}

bool Rebalancer::pays(double gain_s, double step_s, double pause_s, int64_t steps_left) const {
  return gain_s >= rule_.gain * step_s && gain_s * double(steps_left) >= rule_.safety * pause_s;
}

void Rebalancer::rest() {
  constexpr int most_doublings = 20;
  recent_.clear();
  seen_ = 0;
  rests_until_ = step_ + (int64_t(rule_.rest) << std::clamp(disappointing_ - 1, 0, most_doublings));
}

std::optional<Division> Rebalancer::look(int64_t steps_left) {
  const std::vector<bool> differs = others();
  if (std::ranges::find(differs, true) == differs.end()) return {};
  std::vector<double> seconds;
  for (const Recent& step : recent_) seconds.push_back(step.seconds);
  const double before_s = median(std::move(seconds)), begin_s = now_s();
  const double pause_s = report_.pause_s > 0 ? report_.pause_s : 2 * before_s;
  if (!pays(most_gain_s(before_s), before_s, pause_s + planning_s_, steps_left)) return {};
  known_ = speeds(1, rule_.windows - 1);  // in the first window they may have changed
  std::vector<double> s = known_;
  const double usual = median(s);
  for (size_t rank = 0; rank < s.size(); ++rank)
    s[rank] = (differs[rank] ? s[rank] : usual) * now_.speeds[rank];
  std::optional<Planned> planned;
  try {
    planned = planner_(now_, s);
  } catch (const Error&) {  // no plan fits the devices' memory
  }
  planning_s_ = now_s() - begin_s;
  if (!planned ||
      !pays(planned->now.pace_s - planned->best.pace_s, planned->now.pace_s, pause_s, steps_left) ||
      !why_not_moved(now_.plan, planned->best.plan).empty())
    return {};
  report_ = {.speeds = known_,
             .before_s = before_s,
             .predicted_before_s = planned->now.pace_s,
             .predicted_after_s = planned->best.pace_s,
             .planning_s = planning_s_};
  former_ = std::move(planned->now);
  return std::move(planned->best);
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
  const double predicted = 1 - report_.predicted_after_s / report_.predicted_before_s,
               gained = 1 - report_.after_s * usual / report_.before_s;
  disappointing_ = 2 * gained < predicted ? disappointing_ + 1 : 0;
  if (gained <= 0 && !changed) return former;
  report_.what = RebalanceReport::What::kept;
  report_.step = m.step + 1;
  listener_(report_);
  if (changed && disappointing_ < 2) return look(m.left);
  if (disappointing_ > 1) rest();
  return {};
}

void Rebalancer::refused() {
  wanted_.reset();
  former_.reset();
  ++disappointing_;
  rest();
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
  if (!former_) rest();
  listener_(report_);
}

}  // namespace antichain
