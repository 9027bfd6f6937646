// Builds residual networks: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.
#pragma once

#include "models/options.h"

namespace antichain {

// These are the networks of table 1. The form usual for 32 x 32 images has a 3 x 3 stem of stride 1 and no
// first pool.
Graph resnet18(const ModelOptions&);
Graph resnet50(const ModelOptions&);
Graph resnet101(const ModelOptions&);

// These are the networks of section 4.2, 6 n + 2 layers with n = 3, 5, 9: 0.27, 0.46 and 0.85 million
// parameters, in the CIFAR form only. Where the size halves, the shortcut is a 1 x 1 convolution with batch
// norm (the paper's option B; its CIFAR table uses the parameter-free option A, which would be the only user
// of a channel padding operator).
Graph resnet20(const ModelOptions&);
Graph resnet32(const ModelOptions&);
Graph resnet56(const ModelOptions&);

}  // namespace antichain
