// This pass names the gradients of one form of a stage's backward: where each fold over a tensor's consumers
// accumulates, and how each of its terms gets there.
#pragma once

#include <vector>

#include "pipeline/program/stage_operands.h"

namespace antichain {

class GradientTensors {
 public:
  GradientTensors(StageOperands& stage, BackwardTensors& tensors, const BackwardOrder& order, bool parted)
      : stage_(stage), network_(stage.network_), tensors_(tensors), order_(order), parted_(parted) {}

  void add();
  // Adds room for what the other replicas send, from the end of the bucket's last backward on: first a part
  // of their gradients, then their sums of other parts.
  void add_terms();

 private:
  int backward_at(int node) const { return order_.backward_at[size_t(stage_.position(node))]; }
  bool outlives(int node) const { return parted_ && network_[size_t(node)].learns; }  // to the weight half
  void add_output_gradient(int node);
  BufferId written_over(const FoldTerm& begins) const;
  void fold(int tensor);
  void leave_last_term(int consumer, int tensor, OutputGradient&);
  void contribute(int consumer, int tensor, BufferId sum, std::vector<Message> received_before, bool starts);

  StageOperands& stage_;
  const StepNetwork& network_;
  BackwardTensors& tensors_;
  const BackwardOrder& order_;  // the all-reduce is at its end
  const bool parted_;
};

}  // namespace antichain
