// Builds DenseNet-121: Huang et al., "Densely Connected Convolutional Networks", CVPR 2017, table 1, growth
// rate 32. Node names are those of torchvision's densenet121.
//
// The form usual for 32 x 32 images has a 3 x 3 stem of stride 1 and no first pool.
#pragma once

#include "models/options.h"

namespace antichain {

Graph densenet121(const ModelOptions&);

}  // namespace antichain
