// Builds ConvNeXt-tiny: Liu, Mao, Wu, Feichtenhofer, Darrell & Xie, "A ConvNet for the 2020s", CVPR 2022.
// Node names are those of torchvision's convnext_tiny.
//
//   x ─ depthwise 7 x 7 ─ layer norm ─ 1 x 1 to 4 C ─ GELU ─ 1 x 1 to C ─ layer scale ─ add
//    └─────────────────────────────────────────────────────────────────────────────────┘
//
// torchvision permutes to N x H x W x C for norm and linear layers. Here they work on the channels of
// N x C x H x W, which gives the same numbers. Stochastic depth follows the layer scale. Its rate rises in
// proportion to the number of the block, from 0.
//
// In the CIFAR form for 32 x 32 images, the stem's patches have 2 x 2 pixels instead of 4 x 4, so that the
// last planes have 2 x 2 pixels. The classifier's weights start at 0, because SGD would first spend many
// steps on what random ones add to the loss.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_convnext_tiny = {.stochastic_depth = 0.1};
Graph convnext_tiny(const ModelOptions&);

}  // namespace antichain
