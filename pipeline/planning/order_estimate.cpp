#include "pipeline/planning/order_estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "framework/error.h"
#include "pipeline/simulate/steady_step.h"

namespace antichain {
namespace {

void check(const Plan& plan) {
  if (has_replicas(plan))
    throw Error("an order is searched for a plan with no replicas, and this one has them",
                "choose a schedule by its name, or plan without --replicas", ExitCode::usage);
}

}  // namespace

PipelineTimes pipeline_times(const StageSums& sums, const Cluster& cluster, const std::vector<int>& device,
                             int microbatches) {
  PipelineTimes times{.microbatches = microbatches};
  std::map<int, int> rank_on;
  for (size_t s = 0; s < sums.stages.size(); ++s) {
    times.rank_of.push_back(rank_on.emplace(device[s], int(rank_on.size())).first->second);
    times.stages.push_back(stage_times(sums.stages[s], cluster.device(device[s]).speed));
  }
  std::map<std::pair<int, int>, int> link_between;
  const auto transfer = [&](int from_stage, int to_stage, int64_t bytes, int messages) {
    const int from = device[size_t(from_stage)], to = device[size_t(to_stage)];
    if (from == to) return Transfer{from_stage, to_stage};
    return Transfer{from_stage, to_stage, cluster.link(from, to).seconds(bytes, messages),
                    link_between.emplace(std::pair(from, to), int(link_between.size())).first->second};
  };
  for (const Traffic& t : sums.traffic) {
    times.tensors.push_back(transfer(t.from_stage, t.to_stage, t.tensor_bytes, t.tensors));
    if (t.gradients > 0)
      times.gradients.push_back(transfer(t.to_stage, t.from_stage, t.gradient_bytes, t.gradients));
  }
  times.links = int(link_between.size());
  return times;
}

PipelineTimes pipeline_times(const Profile& profile, const Plan& plan, const Cluster& cluster,
                             int microbatches) {
  check(plan);
  std::vector<int> device;
  for (const PlanStage& stage : plan.stages) device.push_back(plan.device_of(stage.ranks.front()));
  StageAdder add(profile);
  StageSums sums = add(plan.stage_of(int(profile.nodes.size())), int(plan.stages.size()));
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const Profile& times = times_of(stage, plan, profile, cluster);
    sums.stages[s] = sum_of(profile, times, stage.nodes, stage.recomputed);
  }
  return pipeline_times(sums, cluster, device, microbatches);
}

OrderEstimate::OrderEstimate(PipelineTimes times) { set(std::move(times)); }

void OrderEstimate::set(PipelineTimes times) {
  pipeline_ = std::move(times);
  update_s_.clear();
  for (size_t s = 0; s < pipeline_.stages.size(); ++s) {
    const size_t rank = size_t(rank_of(int(s)));
    if (rank == update_s_.size()) update_s_.push_back(0);
    update_s_[rank] += pipeline_.stages[s].update_s;
  }
  for (auto* lists : {&tensors_in_, &tensors_out_, &gradients_in_, &gradients_out_}) {
    lists->resize(size_t(stages()));
    for (std::vector<int>& list : *lists) list.clear();
  }
  for (int i = 0; i < int(tensors().size()); ++i) {
    tensors_out_[size_t(tensors()[size_t(i)].from)].push_back(i);
    tensors_in_[size_t(tensors()[size_t(i)].to)].push_back(i);
  }
  for (int i = 0; i < int(gradients().size()); ++i) {
    gradients_out_[size_t(gradients()[size_t(i)].from)].push_back(i);
    gradients_in_[size_t(gradients()[size_t(i)].to)].push_back(i);
  }
  if (now_s_.size() != update_s_.size() || free_s_.size() != size_t(pipeline_.links)) begin_empty();
}

void OrderEstimate::begin_empty() {
  free_s_.assign(size_t(pipeline_.links), 0);
  now_s_.assign(update_s_.size(), 0);
}

double OrderEstimate::step_s(const RankOrders& orders) {
  repeats_ = false;
  begin_empty();
  return play(orders) ? std::ranges::max(now_s_) : std::numeric_limits<double>::infinity();
}

double OrderEstimate::period_s(const RankOrders& orders) {
  constexpr int most_steps = 24;
  repeats_ = true;
  if (now_s_.size() != update_s_.size()) begin_empty();
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

// Plays one step on the clocks as they are. Returns whether all ranks come to its end.
bool OrderEstimate::play(const RankOrders& orders) {
  const size_t ranks = update_s_.size(), M = size_t(microbatches());
  done_.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) done_[r].resize(orders[r].size()), timed_ += int(orders[r].size());
  tensors_sent_.assign(tensors().size() * M, {}), gradients_sent_.assign(gradients().size() * M, {});
  next_.assign(ranks, 0);
  able_.resize(ranks);
  std::iota(able_.rbegin(), able_.rend(), 0);
  while (!able_.empty()) {
    const int rank = able_.back();
    able_.pop_back();
    run(rank, orders[size_t(rank)]);
  }
  for (size_t r = 0; r < ranks; ++r) {
    if (next_[r] < int(orders[r].size())) return false;
    now_s_[r] += update_s_[r];
  }
  last_rank_ = int(std::ranges::max_element(now_s_) - now_s_.begin());
  return true;
}

// Does what the rank can do until it needs what is not sent yet.
void OrderEstimate::run(int rank, const RankOrder& order) {
  const size_t r = size_t(rank), M = size_t(microbatches());
  double now_s = now_s_[r];
  int next = next_[r];
  for (; next < int(order.size()); ++next) {
    const auto [verb, stage, m] = order[size_t(next)];
    const size_t s = size_t(stage);
    const bool forward = verb == Verb::forward, sends = verb != Verb::backward_weight;
    double start_s = now_s;
    At because{next > 0 ? rank : -1, next - 1};
    bool ready = true;
    if (sends) {
      auto& sent = forward ? tensors_sent_ : gradients_sent_;
      for (const int transfer : forward ? tensors_in_[s] : gradients_in_[s]) {
        Sent& message = sent[size_t(transfer) * M + size_t(m)];
        if (message.there_s == not_yet) {
          message.waits = rank;
          ready = false;
          break;
        }
        if (message.there_s > start_s) start_s = message.there_s, because = message.by;
      }
    }
    if (!ready) break;
    now_s = start_s + pipeline_.stages[s].of(verb);
    done_[r][size_t(next)] = {now_s, because};
    if (!sends) continue;
    for (const int transfer : sent_by(stage, forward)) {
      const Transfer& way = (forward ? tensors() : gradients())[size_t(transfer)];
      Sent& message = (forward ? tensors_sent_ : gradients_sent_)[size_t(transfer) * M + size_t(m)];
      message.there_s = now_s, message.by = {rank, next};
      if (way.link >= 0) {
        double& free_s = free_s_[size_t(way.link)];
        message.there_s = free_s = std::max(free_s, now_s) + way.seconds;
      }
      if (message.waits >= 0) able_.push_back(message.waits);
    }
  }
  next_[r] = next, now_s_[r] = now_s;
}

std::vector<OrderEstimate::At> OrderEstimate::critical_path() const {
  std::vector<At> path;
  std::vector<std::vector<int>> came;  // when the path came to each action; −1
  for (const auto& of_rank : done_) came.emplace_back(of_rank.size(), -1);
  At at{last_rank_, int(done_[size_t(last_rank_)].size()) - 1};
  while (at.rank >= 0 && at.index >= 0) {
    int& before = came[size_t(at.rank)][size_t(at.index)];
    if (before >= 0) return {path.begin() + before, path.end()};  // the circle is closed
    before = int(path.size());
    path.push_back(at);
    const At because = done_[size_t(at.rank)][size_t(at.index)].because;
    // The first action of a rank follows its last one of the step before.
    const bool begins = because.rank < 0 && repeats_;
    at = begins ? At{at.rank, int(done_[size_t(at.rank)].size()) - 1} : because;
  }
  return path;
}

}  // namespace antichain
