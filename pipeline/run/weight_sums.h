// WeightSums are the gradients of weights that several nodes have. After the last micro-batch they add up
// what the uses have gathered, in the order of the fold (pipeline/program/program.h), so that the bits do not
// depend on which rank has which use. Every rank that has a weight then updates it by the same sum.
#pragma once

#include <set>

#include "pipeline/run/node_timer.h"
#include "pipeline/run/step_device.h"
#include "pipeline/stage/rank_model.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class WeightSums {
 public:
  // Everything referred to must outlive it.
  WeightSums(const RankProgram& program, RankModel& model, const RankMemory& memory, StepDevice& device)
      : program_(program), model_(model), memory_(memory), device_(device) {}

  void begin_step() { begun_.clear(); }
  // Says, once a step each, whether what is to be sent from the buffer is not folded yet; and, with
  // no_buffer, whether the sums are not finished.
  bool begins(BufferId sent) { return begun_.insert(sent).second; }
  // Folds what is to be sent from the buffer. What the rank receives of the fold before must be there.
  void fold(BufferId sent, NodeTimer&);
  // Folds what nobody else wants, and has the whole gradients where the updates read them: at the rank's
  // first use of each weight. What the rank receives must be there, and `fold` done for what it sends.
  void finish(NodeTimer&);

 private:
  Tensor add_up(const WeightRun&, NodeTimer&);  // returns where the sum is
  const Tensor& gradient(const ParamUse& use) { return model_[use.node].gradients[size_t(use.param)]; }

  const RankProgram& program_;
  RankModel& model_;
  const RankMemory& memory_;
  StepDevice& device_;
  std::set<BufferId> begun_;
};

}  // namespace antichain
