// Builds ResNeXt: Xie et al., "Aggregated Residual Transformations for Deep Neural Networks", CVPR 2017,
// table 1. Its blocks are ResNet's bottlenecks with grouped 3 x 3 convolutions. The CIFAR form has a 3 x 3
// stem of stride 1 and no first pool.
#pragma once

#include "models/options.h"

namespace antichain {

Graph resnext50(const ModelOptions&);   // 32 x 4d
Graph resnext101(const ModelOptions&);  // 32 x 8d

}  // namespace antichain
