// Builds VGG-16: Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition",
// ICLR 2015, table 1, column D. Node names are those of torchvision's vgg16 without batch norm.
//
// In the form usual for 32 x 32 images five pools leave one pixel, and the classifier is 512 - 512 - 512 -
// classes.
#pragma once

#include "models/options.h"

namespace antichain {

Graph vgg16(const ModelOptions&);

}  // namespace antichain
