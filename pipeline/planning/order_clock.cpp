#include "pipeline/planning/order_clock.h"

#include <algorithm>
#include <limits>

#include "framework/error.h"
#include "pipeline/planning/stage_sums.h"
#include "pipeline/simulate/action_seconds.h"
#include "pipeline/simulate/steady_step.h"

namespace antichain {
namespace {

constexpr double not_yet = -1;

void check(const Plan& plan) {
  if (has_replicas(plan) || has_several_stages_a_rank(plan))
    throw Error("an order is searched for a plan with one stage a rank and no replicas, and this is another",
                "choose a schedule by its name, or plan without --replicas and --chunks", ExitCode::usage);
}

}  // namespace

double StageTimes::of(Verb verb) const {
  if (verb == Verb::forward) return forward_s;
  if (verb == Verb::backward) return backward_s;
  return verb == Verb::backward_input ? input_s : weight_s;
}

OrderClock::OrderClock(const Profile& profile, const Plan& plan, const Cluster& cluster, int microbatches)
    : microbatches_(microbatches) {
  check(plan);
  const int stages = int(plan.stages.size());
  const ActionSeconds seconds(plan, profile, cluster);
  for (int s = 0; s < stages; ++s) {
    const int rank = plan.stages[size_t(s)].ranks.front();
    times_.push_back({seconds(rank, s, Verb::forward), seconds(rank, s, Verb::backward),
                      seconds(rank, s, Verb::backward_input), seconds(rank, s, Verb::backward_weight),
                      seconds(rank, s, Verb::update)});
  }
  const auto device = [&](int stage) { return plan.device_of(plan.stages[size_t(stage)].ranks.front()); };
  StageAdder add(profile);
  for (const Traffic& t : add(plan.stage_of(int(profile.nodes.size())), stages).traffic) {
    const Link& there = cluster.link(device(t.from_stage), device(t.to_stage));
    const Link& back = cluster.link(device(t.to_stage), device(t.from_stage));
    tensors_.push_back({t.from_stage, t.to_stage, there.seconds(t.tensor_bytes, t.tensors)});
    if (t.gradients > 0)
      gradients_.push_back({t.to_stage, t.from_stage, back.seconds(t.gradient_bytes, t.gradients)});
  }
  tensors_in_.resize(size_t(stages)), tensors_out_ = gradients_in_ = gradients_out_ = tensors_in_;
  for (int i = 0; i < int(tensors_.size()); ++i) {
    tensors_out_[size_t(tensors_[size_t(i)].from)].push_back(i);
    tensors_in_[size_t(tensors_[size_t(i)].to)].push_back(i);
  }
  for (int i = 0; i < int(gradients_.size()); ++i) {
    gradients_out_[size_t(gradients_[size_t(i)].from)].push_back(i);
    gradients_in_[size_t(gradients_[size_t(i)].to)].push_back(i);
  }
}

void OrderClock::begin_empty() {
  free_s_.assign(tensors_.size() + gradients_.size(), 0);
  now_s_.assign(times_.size(), 0);
}

double OrderClock::step_s(const RankOrders& orders) {
  repeats_ = false;
  begin_empty();
  return play(orders) ? std::ranges::max(now_s_) : std::numeric_limits<double>::infinity();
}

double OrderClock::period_s(const RankOrders& orders) {
  constexpr int most_steps = 24;
  repeats_ = true;
  if (now_s_.size() != times_.size()) begin_empty();
  const double begin_s = std::ranges::min(now_s_);  // clocks stay small, so that no digits are lost
  for (std::vector<double>* clocks : {&now_s_, &free_s_})
    for (double& s : *clocks) s = std::max(0., s - begin_s);
  bool ends = true;
  const double period_s = steady_period_s(
      [&] {
        ends = ends && play(orders);
        std::vector<double> clocks = now_s_;
        clocks.insert(clocks.end(), free_s_.begin(), free_s_.end());
        return clocks;
      },
      most_steps);
  if (ends) return period_s;
  begin_empty();
  return std::numeric_limits<double>::infinity();
}

// One step, on the clocks as they are. Returns whether all stages come to its end.
bool OrderClock::play(const RankOrders& orders) {
  const size_t stages = times_.size(), M = size_t(microbatches_);
  done_.resize(stages);
  for (size_t s = 0; s < stages; ++s) done_[s].assign(orders[s].size(), {}), timed_ += int(orders[s].size());
  tensor_there_s_.assign(tensors_.size() * M, not_yet), tensor_from_.resize(tensors_.size() * M);
  gradient_there_s_.assign(gradients_.size() * M, not_yet), gradient_from_.resize(gradients_.size() * M);
  next_.assign(stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < stages; ++s) moved = run(int(s), orders[s]) || moved;
    for (size_t s = stages; s-- > 0;) moved = run(int(s), orders[s]) || moved;
  }
  for (size_t s = 0; s < stages; ++s) {
    if (next_[s] < int(orders[s].size())) return false;
    now_s_[s] += times_[s].update_s;
  }
  last_stage_ = int(std::ranges::max_element(now_s_) - now_s_.begin());
  return true;
}

// Does what the stage can do with what has arrived so far.
bool OrderClock::run(int stage, const RankOrder& order) {
  const size_t s = size_t(stage), M = size_t(microbatches_);
  int& next = next_[s];
  const int begin = next;
  for (; next < int(order.size()); ++next) {
    const auto [verb, m] = order[size_t(next)];
    const bool forward = verb == Verb::forward, sends = verb != Verb::backward_weight;
    double start_s = now_s_[s];
    At because{next > 0 ? stage : -1, next - 1};
    bool ready = true;
    if (sends) {
      const auto& there = forward ? tensor_there_s_ : gradient_there_s_;
      for (const int wire : forward ? tensors_in_[s] : gradients_in_[s]) {
        const size_t at = size_t(wire) * M + size_t(m);
        if (there[at] == not_yet) ready = false;
        if (there[at] > start_s) start_s = there[at], because = (forward ? tensor_from_ : gradient_from_)[at];
      }
    }
    if (!ready) break;
    const double end_s = start_s + times_[s].of(verb);
    done_[s][size_t(next)] = {end_s, because};
    now_s_[s] = end_s;
    if (!sends) continue;
    for (const int wire : forward ? tensors_out_[s] : gradients_out_[s]) {
      double& free_s = free_s_[size_t(wire) + (forward ? 0 : tensors_.size())];
      free_s = std::max(free_s, end_s) + (forward ? tensors_ : gradients_)[size_t(wire)].seconds;
      const size_t at = size_t(wire) * M + size_t(m);
      (forward ? tensor_there_s_ : gradient_there_s_)[at] = free_s;
      (forward ? tensor_from_ : gradient_from_)[at] = {stage, next};
    }
  }
  return next > begin;
}

std::vector<OrderClock::At> OrderClock::critical_path() const {
  std::vector<At> path;
  std::vector<std::vector<int>> came;  // when the path came to each action; −1
  for (const auto& of_stage : done_) came.emplace_back(of_stage.size(), -1);
  At at{last_stage_, int(done_[size_t(last_stage_)].size()) - 1};
  while (at.stage >= 0 && at.index >= 0) {
    int& before = came[size_t(at.stage)][size_t(at.index)];
    if (before >= 0) return {path.begin() + before, path.end()};  // the circle is closed
    before = int(path.size());
    path.push_back(at);
    const At because = done_[size_t(at.stage)][size_t(at.index)].because;
    // The first action of a stage follows its last one of the step before.
    const bool begins = because.stage < 0 && repeats_;
    at = begins ? At{at.stage, int(done_[size_t(at.stage)].size()) - 1} : because;
  }
  return path;
}

}  // namespace antichain
