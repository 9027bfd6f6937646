// This pass names the gradients of one form of a stage's backward: where each fold over a tensor's consumers
// accumulates, and how each of its terms gets there.
#pragma once

#include <vector>

#include "pipeline/program/stage_operands.h"

namespace antichain {

class GradientTensors {
 public:
  GradientTensors(StageOperands& stage, BackwardTensors& tensors, bool parted)
      : stage_(stage), network_(stage.network_), tensors_(tensors), parted_(parted), end_(stage.end_) {}

  void add();
  // Adds room for what the other replicas send, from the end of the bucket's last backward on: first a part
  // of their gradients, then their sums of other parts.
  void add_terms();

 private:
  int backward_at(int node) const { return end_ - 1 - stage_.position(node); }
  bool outlives(int node) const { return parted_ && network_[size_t(node)].learns; }  // to the weight half
  void add_output_gradient(int node);
  void fold(int tensor);
  void leave_last_term(int consumer, int tensor, OutputGradient&);
  void contribute(int consumer, int tensor, BufferId sum, std::vector<Message> received_before, bool starts);

  StageOperands& stage_;
  const StepNetwork& network_;
  BackwardTensors& tensors_;
  const bool parted_;
  const int end_;  // the time of the all-reduce
};

}  // namespace antichain
