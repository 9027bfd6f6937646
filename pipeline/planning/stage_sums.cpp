#include "pipeline/planning/stage_sums.h"

#include "partition/plan/stage_cost.h"
#include "pipeline/schedule/schedule_passes.h"

namespace antichain {

int64_t StageSums::bytes() const {
  int64_t bytes = 0;
  for (const Traffic& t : traffic) bytes += t.tensor_bytes + t.gradient_bytes;
  return bytes;
}

StageAdder::StageAdder(const Profile& profile) : profile_(profile), consumers_(profile.consumers()) {}

const StageSums& StageAdder::operator()(const std::vector<int>& stage_of, int stages,
                                        const std::vector<bool>& replicated) {
  stages_ = stages;
  sums_.stages.assign(size_t(stages), {});
  sums_.traffic.clear();
  pairs_.assign(size_t(stages) * size_t(stages), {});
  last_tensor_.assign(size_t(stages), -1);
  for (size_t n = 0; n < stage_of.size(); ++n) {
    if (stage_of[n] < 0) continue;
    const NodeCost& cost = profile_.nodes[n].cost;
    StageSum& stage = sums_.stages[size_t(stage_of[n])];
    stage.forward_s += cost.forward_s;
    stage.backward_s += cost.backward_s();
    stage.backward_input_s += cost.backward_input_s;
    stage.late_weight_s += cost.late_weight_s();
    stage.update_s += cost.update_s;
    stage.param_bytes += cost.param_bytes;
    stage.held_bytes += antichain::held_bytes(cost);
    stage.kept_bytes += antichain::kept_bytes(cost);
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
  const int own = stage_of[size_t(tensor)];
  const int64_t bytes = profile_.nodes[size_t(tensor)].cost.output_bytes;
  const bool gradient = profile_.nodes[size_t(tensor)].needs_gradient;
  fold_in_runs(consumers_[size_t(tensor)], stage_of, own, [&](int consumer, bool joins) {
    const int stage = stage_of[size_t(consumer)];
    if (stage == own) return;
    Traffic& pair = between(own, stage, stages_);
    if (last_tensor_[size_t(stage)] != tensor) {
      last_tensor_[size_t(stage)] = tensor;
      ++pair.tensors, pair.tensor_bytes += bytes;
    }
    if (gradient && !joins) ++pair.gradients, pair.gradient_bytes += bytes;
  });
}

}  // namespace antichain
