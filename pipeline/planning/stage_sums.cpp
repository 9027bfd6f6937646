#include "pipeline/planning/stage_sums.h"

#include <algorithm>
#include <span>

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

int64_t StageSums::bytes() const {
  int64_t bytes = 0;
  for (const Traffic& t : traffic) bytes += t.tensor_bytes + t.gradient_bytes;
  return bytes;
}

void StageSum::add(const StageSum& other) {
  forward_s += other.forward_s;
  backward_s += other.backward_s;
  update_s += other.update_s;
  backward_input_s += other.backward_input_s;
  late_weight_s += other.late_weight_s;
  param_bytes += other.param_bytes;
  held_bytes += other.held_bytes;
  kept_bytes += other.kept_bytes;
}

StageAdder::StageAdder(const Profile& profile) : profile_(profile) {
  const std::vector<std::vector<int>> consumers = profile.consumers();
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    const NodeCost& cost = profile.nodes[n].cost;
    const size_t begin = consumers_.size();
    consumers_.insert(consumers_.end(), consumers[n].begin(), consumers[n].end());
    nodes_.push_back({.sum = {.forward_s = cost.forward_s,
                              .backward_s = cost.backward_s(),
                              .update_s = cost.update_s,
                              .backward_input_s = cost.backward_input_s,
                              .late_weight_s = cost.late_weight_s(),
                              .param_bytes = cost.param_bytes,
                              .held_bytes = held_bytes(cost),
                              .kept_bytes = kept_bytes(cost)},
                      .output_bytes = cost.output_bytes,
                      .needs_gradient = profile.nodes[n].needs_gradient,
                      .begin = begin,
                      .end = consumers_.size()});
  }
}

const StageSums& StageAdder::operator()(const std::vector<int>& stage_of, int stages,
                                        const std::vector<bool>& replicated) {
  stages_ = stages;
  sums_.stages.assign(size_t(stages), {});
  sums_.traffic.clear();
  pairs_.assign(size_t(stages) * size_t(stages), {});
  last_tensor_.assign(size_t(stages), -1);
  for (size_t n = 0; n < stage_of.size(); ++n) {
    if (stage_of[n] < 0) continue;
    sums_.stages[size_t(stage_of[n])].add(nodes_[n].sum);
    add_traffic(int(n), stage_of);
  }
  for (size_t s = 0; s < replicated.size(); ++s)
    if (replicated[s]) sums_.stages[s].buckets = buckets(int(s), stage_of);
  for (int to = 1; to < stages; ++to)
    for (int from = 0; from < to; ++from)
      if (const Traffic& pair = between(from, to, stages); pair.tensors > 0) {
        sums_.traffic.push_back(pair);
        sums_.traffic.back().from_stage = from, sums_.traffic.back().to_stage = to;
      }
  return sums_;
}

std::vector<GradientBucket> StageAdder::buckets(int stage, const std::vector<int>& stage_of) const {
  std::vector<int> nodes;
  for (size_t n = 0; n < stage_of.size(); ++n)
    if (stage_of[n] == stage) nodes.push_back(int(n));
  return gradient_buckets(profile_, nodes, bucket_count(profile_, nodes));
}

// There is one message to every stage that consumes the tensor. Back comes one for every run of the
// gradient's fold.
void StageAdder::add_traffic(int tensor, const std::vector<int>& stage_of) {
  const Node& node = nodes_[size_t(tensor)];
  const int own = stage_of[size_t(tensor)];
  const std::span<const int> consumers(consumers_.data() + node.begin, node.end - node.begin);
  if (std::ranges::all_of(consumers, [&](int c) { return stage_of[size_t(c)] == own; })) return;
  fold_in_runs(consumers, stage_of, own, [&](int consumer, bool joins) {
    const int stage = stage_of[size_t(consumer)];
    if (stage == own) return;
    Traffic& pair = between(own, stage, stages_);
    if (last_tensor_[size_t(stage)] != tensor) {
      last_tensor_[size_t(stage)] = tensor;
      ++pair.tensors, pair.tensor_bytes += node.output_bytes;
    }
    if (node.needs_gradient && !joins) ++pair.gradients, pair.gradient_bytes += node.output_bytes;
  });
}

}  // namespace antichain
