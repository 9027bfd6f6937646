// Builds MobileNet-v3-large: Howard et al., "Searching for MobileNetV3", ICCV 2019, table 1. Node names are
// those of torchvision's mobilenet_v3_large.
//
// In the CIFAR form for 32 x 32 images, the stem and the first block of stride 2 have stride 1, so that the
// last planes have 4 x 4 pixels.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_mobilenet_v3_large = {.dropout = 0.2};
Graph mobilenet_v3_large(const ModelOptions&);

}  // namespace antichain
