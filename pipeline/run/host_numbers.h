// HostNumbers watch the numbers of a stage in host memory, and find exactly where a bad one came from. The
// micro-batch runs again, right away, while all that it read is still there, and each node's results are
// checked in turn. Nothing of the step changes.
#pragma once

#include <span>
#include <vector>

#include "pipeline/run/number_watch.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class HostNumbers final : public NumberWatch {
 public:
  // Everything referred to must outlive it.
  HostNumbers(RankModel&, WatchedRank);

  void begin_steps(std::span<const StepInput>) override;
  void add_loss(NodeId, int microbatch, const Tensor& y) override;
  void finish(StepResult&) override;

 private:
  class Locator;  // observes the second run
  void look_at_forward(int stage, int microbatch) override;
  void look_at_backward(int stage, int microbatch, Verb half) override;
  void look_at_gradients() override;
  bool ask() override { return judge_(steps_[size_t(updating())].report); }
  void check_output(const StageMemory&, NodeId, int microbatch);
  void check_gradients(const StageMemory&, const BackwardTensors&, NodeId, int microbatch,
                       std::span<const Tensor> dx, std::span<const Tensor> dw);

  RankModel& model_;
  Context& context_;
  const WatchedRank place_;
  struct OfStep {
    StepInput input;
    double loss = 0, correct = 0;
    NumberReport report;
  };
  OfStep& of(int microbatch) { return steps_[size_t(microbatch / place_.microbatches)]; }

  std::vector<OfStep> steps_;
  size_t finished_ = 0;                                      // of them
  bool located_forward_ = false, located_backward_ = false;  // in this step: the first micro-batch counts
};

}  // namespace antichain
