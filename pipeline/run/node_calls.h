// NodeCalls calls a stage's kernels in a step. A forward takes the nodes in order, a backward in reverse, and
// an update in order again.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/run/gradient_folds.h"
#include "pipeline/run/node_observer.h"
#include "pipeline/run/node_timer.h"
#include "pipeline/run/spoil.h"
#include "pipeline/run/step.h"
#include "pipeline/run/step_device.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class NodeCalls {
 public:
  // It calls the nodes of one of the rank's stages, ascending, which trains with weights that are `delay`
  // updates old. Everything else that is referred to must outlive it.
  NodeCalls(RankModel&, std::vector<NodeId> nodes, const StageMemory&, const Seat&, Mode, StepDevice&,
            int delay = 0);

  // Begins one step, or several in a row. The timer, the inputs and the spoil must live until they end.
  void begin_steps(std::span<const StepInput>, NodeTimer&, const Spoil&);

  void forward(int microbatch, const WeightVersion&, NodeObserver&);
  int nodes() const { return int(nodes_.size()); }
  // Calls both halves with Verb::backward, else the one that `half` names: of the nodes at the positions from
  // `first` to before `end`.
  void backward(int microbatch, Verb half, const WeightVersion&, NodeObserver&, int first, int end);
  // Absorbs the statistics of all micro-batches of the step, and updates the weights.
  void update(int step = 0);

  // These do the last forward or backward once more, right away, while all that it read is still there.
  // Outputs and sums of gradients are written again with the same bits, and gradients of weights go
  // elsewhere.
  void forward_again(int microbatch, NodeObserver& observer) { forward(microbatch, weights_, observer); }
  void backward_again(int microbatch, Verb half, NodeObserver&);

 private:
  struct Halves {
    bool input = true, weight = true;
  };
  // Where a node's forward writes.
  struct Results {
    const Tensor& y;
    std::vector<Tensor> stash, statistics;
  };
  void call_forward(NodeId, int microbatch, std::span<const Tensor> x, const Results&, Verb);
  void recompute(NodeId, int microbatch, const BackwardTensors&, Verb);
  void absorb(NodeId, int step);
  std::vector<std::vector<Tensor>> statistics_of(NodeId, int step) const;  // of every micro-batch
  const StepInput& input_of(int microbatch) const {
    return inputs_[size_t(microbatch / seat_.microbatches_of_step())];
  }
  DropoutKey dropout_key(int microbatch) const;
  void backward_node(NodeId, int microbatch, Halves, const BackwardTensors&, GradientFolds&, NodeObserver&);
  void call_halves(NodeId, int microbatch, Backward&, std::span<const Tensor> dw, Halves, GradientFolds&,
                   NodeObserver&);

  RankModel& model_;
  const std::vector<NodeId> nodes_;
  const Graph& graph_;
  Context& context_;
  const StageMemory& memory_;
  const Seat seat_;
  const Mode mode_;
  StepDevice& device_;
  const int delay_;
  GradientFolds whole_, parted_;     // of the backward's two forms
  std::unique_ptr<Update> at_once_;  // of all parameters of the nodes, where the device has such a launch
  std::unique_ptr<Absorption> absorb_at_once_;            // likewise of all statistics
  std::map<NodeId, std::unique_ptr<Absorption>> absorb_;  // of each node that has some
  std::span<const StepInput> inputs_;                     // of the steps
  NodeTimer* timer_ = nullptr;
  const Spoil* spoil_ = nullptr;
  bool again_ = false;     // gradients of weights go elsewhere
  WeightVersion weights_;  // that is read
};

}  // namespace antichain
