// VGG-16: Simonyan & Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR
// 2015, configuration D, in the form usual for 32 x 32 images: five pools leave one pixel, and the classifier is
// 512 - 512 - 512 - classes. Node names are those of torchvision's vgg16 without batch norm.
#pragma once

#include "models/model.h"

namespace antichain {

Graph vgg16(const ModelOptions&);

}  // namespace antichain
