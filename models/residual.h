// Builds the networks of ResNet's and ResNeXt's tables: a stem, then stages of residual blocks, each stage
// twice as wide as the one before and, from the second on, half as high. Node names are torchvision's, so
// that parameters' names are too ("layer2.0.downsample.0.weight"). In the CIFAR form the last batch norm of
// every bottleneck has weights that are initialised to 0.
#pragma once

#include <string>
#include <vector>

#include "models/options.h"

namespace antichain {

enum class Block { basic, bottleneck };

// A ResidualTable is one column of a paper's table. The c-th stage has channels · 2^c channels; a
// bottleneck's output has four times as many.
struct ResidualTable {
  Block block = Block::basic;
  std::vector<int> blocks;   // of each stage
  int64_t channels = 64;     // of the stem and the first stage
  int groups = 1;            // of a bottleneck's 3 x 3 convolution …
  int64_t group_width = 64;  // … and the channels of each of them in the first stage
};

// The stem is 7 x 7 of stride 2 and a max pool in the ImageNet form, 3 x 3 of stride 1 in the CIFAR form.
Graph residual_network(std::string name, const ResidualTable&, const ModelOptions&);

}  // namespace antichain
