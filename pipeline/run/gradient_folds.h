// GradientFolds are the sums of gradients within one form of a stage's backward. What the consumers of a
// tensor contribute, here and on other ranks, is folded in an order that does not depend on the cut
// (pipeline/program/program.h).
#pragma once

#include <vector>

#include "framework/context.h"
#include "pipeline/run/step_device.h"
#include "pipeline/stage/stage_memory.h"

namespace antichain {

class GradientFolds {
 public:
  // Everything referred to must outlive it.
  GradientFolds(Context& context, const StageMemory& memory, const BackwardTensors& tensors,
                StepDevice& device)
      : context_(context), memory_(memory), tensors_(tensors), device_(device) {}

  // Returns where the backward of a node writes the gradient of each of its inputs: into the sum if it starts
  // the fold or can add to it, else beside the sum. The tensor is empty for an input whose gradient nobody
  // wants.
  std::vector<Tensor> begin(NodeId, int microbatch);
  // Returns how it writes each of them.
  std::vector<Into> into(NodeId) const;
  // Adds what was written beside the sums, after that backward. `dx` is what `begin` returned.
  void end(NodeId, int microbatch, const std::vector<Tensor>& dx);
  // Returns the gradient of a node's output. With `finish` the terms that arrived are added first; the weight
  // half, when it comes later, finds the fold finished.
  Tensor output_gradient(NodeId, int microbatch, bool finish);
  // Returns the fold's last term, which the node's kernel is to add; empty where the sum has it already.
  Tensor output_term(NodeId, int microbatch) const;

 private:
  void add_received(const std::vector<Message>&, int microbatch, const Tensor& sum, bool empty);

  Context& context_;
  const StageMemory& memory_;
  const BackwardTensors& tensors_;
  StepDevice& device_;
};

}  // namespace antichain
