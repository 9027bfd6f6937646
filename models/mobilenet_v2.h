// Builds MobileNet-v2: Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018,
// table 2, of width 1. Node names are those of torchvision's mobilenet_v2.
//
// In the CIFAR form for 32 x 32 images, stem and second stage have stride 1, so that the last planes have
// 4 x 4 pixels.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_mobilenet_v2 = {.dropout = 0.2};
Graph mobilenet_v2(const ModelOptions&);

}  // namespace antichain
