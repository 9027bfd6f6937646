#include "pipeline/planning/order_estimate.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "framework/error.h"
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

PipelineTimes pipeline_times(const StageSums& sums, const Cluster& cluster, const std::vector<int>& device,
                             double overhead_s, int microbatches) {
  PipelineTimes times{.microbatches = microbatches};
  for (size_t s = 0; s < sums.stages.size(); ++s)
    times.stages.push_back(stage_times(sums.stages[s], overhead_s, cluster.device(device[s]).speed));
  for (const Traffic& t : sums.traffic) {
    const int from = device[size_t(t.from_stage)], to = device[size_t(t.to_stage)];
    times.tensors.push_back(
        {t.from_stage, t.to_stage, cluster.link(from, to).seconds(t.tensor_bytes, t.tensors)});
    if (t.gradients > 0)
      times.gradients.push_back(
          {t.to_stage, t.from_stage, cluster.link(to, from).seconds(t.gradient_bytes, t.gradients)});
  }
  return times;
}

PipelineTimes pipeline_times(const Profile& profile, const Plan& plan, const Cluster& cluster,
                             int microbatches) {
  check(plan);
  std::vector<int> device;
  for (const PlanStage& stage : plan.stages) device.push_back(plan.device_of(stage.ranks.front()));
  StageAdder add(profile);
  const StageSums& sums = add(plan.stage_of(int(profile.nodes.size())), int(plan.stages.size()));
  return pipeline_times(sums, cluster, device, profile.overhead_s, microbatches);
}

OrderEstimate::OrderEstimate(PipelineTimes times) { set(std::move(times)); }

void OrderEstimate::set(PipelineTimes times) {
  pipeline_ = std::move(times);
  tensors_in_.assign(size_t(stages()), {}), tensors_out_ = gradients_in_ = gradients_out_ = tensors_in_;
  for (int i = 0; i < int(tensors().size()); ++i) {
    tensors_out_[size_t(tensors()[size_t(i)].from)].push_back(i);
    tensors_in_[size_t(tensors()[size_t(i)].to)].push_back(i);
  }
  for (int i = 0; i < int(gradients().size()); ++i) {
    gradients_out_[size_t(gradients()[size_t(i)].from)].push_back(i);
    gradients_in_[size_t(gradients()[size_t(i)].to)].push_back(i);
  }
  if (now_s_.size() != size_t(stages()) || free_s_.size() != tensors().size() + gradients().size())
    begin_empty();
}

void OrderEstimate::begin_empty() {
  free_s_.assign(tensors().size() + gradients().size(), 0);
  now_s_.assign(pipeline_.stages.size(), 0);
}

double OrderEstimate::step_s(const RankOrders& orders) {
  repeats_ = false;
  begin_empty();
  return play(orders) ? std::ranges::max(now_s_) : std::numeric_limits<double>::infinity();
}

double OrderEstimate::period_s(const RankOrders& orders) {
  constexpr int most_steps = 24;
  repeats_ = true;
  if (now_s_.size() != pipeline_.stages.size()) begin_empty();
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

// Plays one step on the clocks as they are. Returns whether all stages come to its end.
bool OrderEstimate::play(const RankOrders& orders) {
  const size_t stages = pipeline_.stages.size(), M = size_t(microbatches());
  done_.resize(stages);
  for (size_t s = 0; s < stages; ++s) done_[s].assign(orders[s].size(), {}), timed_ += int(orders[s].size());
  tensor_there_s_.assign(tensors().size() * M, not_yet), tensor_from_.resize(tensors().size() * M);
  gradient_there_s_.assign(gradients().size() * M, not_yet), gradient_from_.resize(gradients().size() * M);
  next_.assign(stages, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t s = 0; s < stages; ++s) moved = run(int(s), orders[s]) || moved;
    for (size_t s = stages; s-- > 0;) moved = run(int(s), orders[s]) || moved;
  }
  for (size_t s = 0; s < stages; ++s) {
    if (next_[s] < int(orders[s].size())) return false;
    now_s_[s] += pipeline_.stages[s].update_s;
  }
  last_stage_ = int(std::ranges::max_element(now_s_) - now_s_.begin());
  return true;
}

// Does what the stage can do with what has arrived so far.
bool OrderEstimate::run(int stage, const RankOrder& order) {
  const size_t s = size_t(stage), M = size_t(microbatches());
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
      for (const int transfer : forward ? tensors_in_[s] : gradients_in_[s]) {
        const size_t at = size_t(transfer) * M + size_t(m);
        if (there[at] == not_yet) ready = false;
        if (there[at] > start_s) start_s = there[at], because = (forward ? tensor_from_ : gradient_from_)[at];
      }
    }
    if (!ready) break;
    const double end_s = start_s + pipeline_.stages[s].of(verb);
    done_[s][size_t(next)] = {end_s, because};
    now_s_[s] = end_s;
    if (!sends) continue;
    for (const int transfer : forward ? tensors_out_[s] : gradients_out_[s]) {
      double& free_s = free_s_[size_t(transfer) + (forward ? 0 : tensors().size())];
      free_s = std::max(free_s, end_s) + (forward ? tensors() : gradients())[size_t(transfer)].seconds;
      const size_t at = size_t(transfer) * M + size_t(m);
      (forward ? tensor_there_s_ : gradient_there_s_)[at] = free_s;
      (forward ? tensor_from_ : gradient_from_)[at] = {stage, next};
    }
  }
  return next > begin;
}

std::vector<OrderEstimate::At> OrderEstimate::critical_path() const {
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
