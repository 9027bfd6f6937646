// Builds SqueezeNet 1.0: Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and
// <0.5MB model size", arXiv:1602.07360, 2016, table 1. Node names are those of torchvision's squeezenet1_0.
//
// In the CIFAR form for 32 x 32 images the 7 x 7 stem of stride 2 becomes 3 x 3 of stride 1 with padding. The
// classifier's biases are initialised to 1.
#pragma once

#include "models/options.h"

namespace antichain {

Graph squeezenet1_0(const ModelOptions&);

}  // namespace antichain
