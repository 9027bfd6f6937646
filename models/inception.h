// Builds Inception-v3: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR
// 2016, table 1. Where ModelOptions::aux gives it a weight, the auxiliary head of section 4 is one more loss
// node, "AuxLogits.loss". Node names are those of torchvision's inception_v3.
//
// The CIFAR form for 32 x 32 images changes no parameter except the classes'. The stem's first layer has
// stride 1, its layers are padded, and its second pool is left out, so that the modules of figures 5, 6 and 7
// see 16 x 16, 7 x 7 and 3 x 3 pixels (35, 17 and 8 at 299). The auxiliary head has no pool in front, and
// averages the 3 x 3 pixels that are left. The last layer's weights are initialised with a deviation of 0.01.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_inception_v3 = {.image = 299};
Graph inception_v3(const ModelOptions&);

}  // namespace antichain
