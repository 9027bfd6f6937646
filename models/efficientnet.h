// Builds EfficientNet-B0: Tan & Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural
// Networks", ICML 2019, table 1. Node names are those of torchvision's efficientnet_b0. The rate of
// stochastic depth rises in proportion to the number of the block, from 0.
//
// In the CIFAR form for 32 x 32 images, stem and second stage have stride 1, so that the last planes have
// 4 x 4 pixels. The classifier's weights start as those for 1,000 classes do. By torchvision's rule those for
// ten would be ten times as large, and the first loss 3.2 instead of 2.3.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_efficientnet_b0 = {.dropout = 0.2, .stochastic_depth = 0.2};
Graph efficientnet_b0(const ModelOptions&);

}  // namespace antichain
