// OutputSums are what an evaluation adds up of a network's output and its targets beside the loss and the
// hits. Whoever asks for them knows what they mean (app/report/output_errors.h); here they are numbers.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "framework/graph.h"
#include "framework/tensor.h"

namespace antichain {

struct OutputSums {
  size_t size = 0;     // how many; 0: there are none, and the rest says nothing
  NodeId output = -1;  // the node that the model's own loss is of
  std::string target;  // the input that has the targets
  TensorSpec targets;  // of a micro-batch
  // Adds what the first samples of a micro-batch have. The output is samples first, in plain layout.
  std::function<void(std::span<const float> output, const Tensor& targets, int64_t samples,
                     std::span<double> sums)>
      add;
};

}  // namespace antichain
