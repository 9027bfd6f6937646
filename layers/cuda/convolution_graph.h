// Describes a pass of a convolution in cuDNN's graph API, with the rule for its engines and its name for
// people.
#pragma once

#include <string>

#include "layers/cuda/convolution.h"
#include "layers/cuda/cudnn_graph.h"

namespace antichain::cuda {

enum TensorId : int64_t { id_x = 1, id_weight = 2, id_y = 3 };

// Describes the operation; gradients of weights have the type `Convolution::gradient`.
Descriptor describe(const Convolution&, Pass);
// Returns the rule, which excludes the engines that ANTICHAIN_CUDA_SKIP names.
EngineRule rule_for(DType, Factors);
// Returns "forward bf16 x 32 x 3 x 32 x 32 weights 64 x 3 x 3 x 3 stride 1 1 pad 1 1".
std::string in_words(const Convolution&, Pass, const EngineRule&);

}  // namespace antichain::cuda
