// An observer of the kernels of a stage hears of each node's results right after they were computed. The
// tensors are valid only until it returns.
#pragma once

#include <span>

#include "framework/graph.h"
#include "framework/tensor.h"

namespace antichain {

class NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  virtual void after_forward(NodeId, int /*microbatch*/, const Tensor& /*y*/) {}
  // `dx` has one tensor per input, empty where none was asked for; `dw` has one per parameter, or nothing.
  virtual void after_backward(NodeId, int /*microbatch*/, std::span<const Tensor> /*dx*/,
                              std::span<const Tensor> /*dw*/) {}
};

}  // namespace antichain
