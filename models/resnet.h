// Residual networks: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. Node names are
// torchvision's, so that parameters are too ("layer2.0.downsample.0.weight").
#pragma once

#include "models/model.h"

namespace antichain {

// Section 4.2 of the paper, n = 3: 0.27 million parameters. Where the size halves, the shortcut is a 1 x 1
// convolution with batch norm (the paper's option B; its CIFAR table uses the parameter-free option A, which
// would be the only user of a channel padding operator).
Graph resnet20(const ModelOptions&);

// Table 1's 18-layer column in the form usual for 32 x 32 images: a 3 x 3 stem of stride 1 and no first pool.
Graph resnet18(const ModelOptions&);

}  // namespace antichain
