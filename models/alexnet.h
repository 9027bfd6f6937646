// AlexNet with one tower: Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
// arXiv:1404.5997, 2014, section 5; the two-tower original is Krizhevsky, Sutskever & Hinton, "ImageNet
// Classification with Deep Convolutional Neural Networks", NIPS 2012. Node names are those of torchvision's
// alexnet.
//
// The CIFAR form for 32 x 32 images: the 11 x 11 stem of stride 4 becomes 3 x 3 of stride 2, the pools are 2
// x 2 without overlap, and the last of them leaves the 2 x 2 pixels that the classifier sees. Widths are the
// paper's.
#pragma once

#include "models/options.h"

namespace antichain {

Graph alexnet(const ModelOptions&);

}  // namespace antichain
