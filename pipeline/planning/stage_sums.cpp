#include "pipeline/planning/stage_sums.h"

#include <algorithm>
#include <utility>

#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

int64_t StageSums::bytes() const {
  int64_t bytes = 0;
  for (const Traffic& t : traffic) bytes += t.tensor_bytes + t.gradient_bytes;
  return bytes;
}

StageAdder::StageAdder(const Profile& profile) : profile_(profile), stage_of_(profile.nodes.size(), -1) {
  const std::vector<std::vector<int>> consumers = profile.consumers();
  for (size_t n = 0; n < profile.nodes.size(); ++n) {
    const NodeCost& cost = profile.nodes[n].cost;
    const size_t begin = consumers_.size();
    consumers_.insert(consumers_.end(), consumers[n].begin(), consumers[n].end());
    nodes_.push_back({.output_bytes = cost.output_bytes,
                      .needs_gradient = profile.nodes[n].needs_gradient,
                      .begin = begin,
                      .end = consumers_.size()});
  }
}

StagePart StageAdder::part(std::vector<int> nodes, bool replicated, const Profile& times) const {
  StagePart part{.nodes = std::move(nodes)};
  part.sum = sum_of(profile_, times, part.nodes);
  for (int n : part.nodes) {
    const auto elsewhere = [&](int c) { return !std::ranges::binary_search(part.nodes, c); };
    const std::span<const int> all = consumers(nodes_[size_t(n)]);
    if (std::any_of(all.rbegin(), all.rend(), elsewhere)) part.leaving.push_back(n);  // mostly the last is
  }
  if (replicated)
    part.buckets = gradient_buckets(profile_, times, part.nodes, bucket_count(profile_, part.nodes));
  return part;
}

const StageSums& StageAdder::operator()(const std::vector<const StagePart*>& parts) {
  const int stages = int(parts.size());
  sums_.stages.resize(parts.size()), sums_.buckets.resize(parts.size());
  sums_.traffic.clear();
  looked_at_ = 0;
  pairs_.resize(parts.size() * parts.size());
  last_tensor_.assign(parts.size(), -1);
  for (int s = 0; s < stages; ++s) {
    sums_.stages[size_t(s)] = parts[size_t(s)]->sum;
    sums_.buckets[size_t(s)] = parts[size_t(s)]->buckets;
    for (int n : parts[size_t(s)]->nodes) stage_of_[size_t(n)] = s;
  }
  for (const StagePart* part : parts)
    for (int tensor : part->leaving) add_traffic(tensor);
  for (int to = 1; to < stages; ++to)
    for (int from = 0; from < to; ++from)
      if (Traffic& pair = between(from, to); pair.tensors > 0) {
        pair.from_stage = from, pair.to_stage = to;
        sums_.traffic.push_back(std::exchange(pair, {}));
      }
  return sums_;
}

const StageSums& StageAdder::operator()(const std::vector<int>& stage_of, int stages,
                                        const std::vector<bool>& replicated) {
  std::vector<StagePart> parts;
  std::vector<const StagePart*> of_cut;
  for (int s = 0; s < stages; ++s) {
    std::vector<int> nodes;
    for (size_t n = 0; n < stage_of.size(); ++n)
      if (stage_of[n] == s) nodes.push_back(int(n));
    parts.push_back(part(std::move(nodes), !replicated.empty() && replicated[size_t(s)], profile_));
  }
  for (const StagePart& part : parts) of_cut.push_back(&part);
  return (*this)(of_cut);
}

// There is one message to every stage that consumes the tensor. Back comes one for every run of the
// gradient's fold.
void StageAdder::add_traffic(int tensor) {
  const Node& node = nodes_[size_t(tensor)];
  const int own = stage_of_[size_t(tensor)];
  looked_at_ += int64_t(node.end - node.begin);
  fold_in_runs(consumers(node), stage_of_, own, [&](int consumer, bool joins) {
    const int stage = stage_of_[size_t(consumer)];
    if (stage == own) return;
    Traffic& pair = between(own, stage);
    if (last_tensor_[size_t(stage)] != tensor) {
      last_tensor_[size_t(stage)] = tensor;
      ++pair.tensors, pair.tensor_bytes += node.output_bytes;
    }
    if (node.needs_gradient && !joins) ++pair.gradients, pair.gradient_bytes += node.output_bytes;
  });
}

}  // namespace antichain
