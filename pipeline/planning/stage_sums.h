// StageSums are a cut as a pipeline sees it: what each stage adds up to, and what each pair of stages sends.
// Everything else about the network is irrelevant to how long a step takes, so plans can be compared without
// making their schedules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/simulate/action_seconds.h"

namespace antichain {

// Traffic is that of one micro-batch: tensors go from the earlier stage to the later one, and gradients come
// back.
struct Traffic {
  int from_stage = 0, to_stage = 0;
  int tensors = 0, gradients = 0;
  int64_t tensor_bytes = 0, gradient_bytes = 0;
};

struct StageSums {
  std::vector<StageSum> stages;
  std::vector<std::vector<GradientBucket>> buckets;  // of each stage; none where it has no replicas
  // It lists the pairs that send anything, by receiving stage, then by sending one, ascending.
  std::vector<Traffic> traffic;
  int64_t bytes() const;  // all of it
};

// A StagePart is what a stage is by itself, wherever the other stages begin and end.
struct StagePart {
  std::vector<int> nodes;    // ascending
  std::vector<int> leaving;  // those with a consumer in another stage
  StageSum sum;
  std::vector<GradientBucket> buckets = {};
};

// A StageAdder adds up a network again and again, for one cut after another. A search keeps the parts, which
// many cuts have in common, and then only the tensors that leave a stage are looked at.
class StageAdder {
 public:
  explicit StageAdder(const Profile&);  // keeps a reference
  // `times` is the profile of the stage's devices.
  StagePart part(std::vector<int> nodes, bool replicated, const Profile& times) const;
  // The parts are those of one cut, in the order of its stages. The result holds until the next call.
  const StageSums& operator()(const std::vector<const StagePart*>& parts);
  // Does the same for a stage per node, −1 for inputs, with the network's own times. `replicated` says which
  // stages have replicas; none where it is empty.
  const StageSums& operator()(const std::vector<int>& stage_of, int stages,
                              const std::vector<bool>& replicated = {});
  // Returns how many consumers of tensors the last call looked at.
  int64_t looked_at() const { return looked_at_; }

 private:
  // A node's consumers ascend: consumers_[begin] to consumers_[end - 1].
  struct Node {
    int64_t output_bytes = 0;
    bool needs_gradient = false;
    size_t begin = 0, end = 0;
  };
  void add_traffic(int tensor);
  Traffic& between(int from, int to) { return pairs_[size_t(to) * sums_.stages.size() + size_t(from)]; }
  std::span<const int> consumers(const Node& node) const {
    return {consumers_.data() + node.begin, node.end - node.begin};
  }

  const Profile& profile_;
  std::vector<Node> nodes_;
  std::vector<int> consumers_;
  std::vector<int> stage_of_;     // per node; −1 for inputs
  std::vector<Traffic> pairs_;    // zero between calls
  std::vector<int> last_tensor_;  // per stage: the last tensor that was counted as sent there
  StageSums sums_;
  int64_t looked_at_ = 0;
};

}  // namespace antichain
