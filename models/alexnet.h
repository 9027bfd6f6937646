// Builds AlexNet with one tower: Krizhevsky, "One weird trick for parallelizing convolutional neural
// networks", arXiv:1404.5997, 2014, section 5. The two-tower original is Krizhevsky, Sutskever & Hinton,
// "ImageNet Classification with Deep Convolutional Neural Networks", NIPS 2012. Node names are those of
// torchvision's alexnet.
//
// In the CIFAR form for 32 x 32 images the 11 x 11 stem of stride 4 becomes 3 x 3 of stride 2, and the pools
// are 2 x 2 without overlap. The last pool leaves 2 x 2 pixels for the classifier. Widths are the paper's.
#pragma once

#include "models/options.h"

namespace antichain {

Graph alexnet(const ModelOptions&);

}  // namespace antichain
