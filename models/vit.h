// These are vision transformers: ViT-B/16 (Dosovitskiy et al., "An Image Is Worth 16x16 Words: Transformers
// for Image Recognition at Scale", ICLR 2021), and one as wide as DeiT's smallest (Touvron et al., "Training
// Data-Efficient Image Transformers & Distillation through Attention", ICML 2021). Patches become tokens, one
// more token stands for the class, and blocks normalise before attention and before the two-layer network.
//
//               layers  heads  width
//   vit_b_16      12     12     768
//   vit_tiny      12      3     192
//
// Names, shapes and initial distributions are those of torchvision's vit_b_16. The ImageNet form has patches
// of 16 x 16 pixels, the CIFAR form of 4 x 4.
#pragma once

#include "models/options.h"

namespace antichain {

constexpr UsualOptions usual_vit = {.dropout = 0};

// A VitTable says how large a network is.
struct VitTable {
  int layers = 12, heads = 12;
  int64_t width = 768;
};
Graph vit_network(std::string name, const VitTable&, int patch, const ModelOptions& completed);

Graph vit_b_16(const ModelOptions&);
Graph vit_tiny(const ModelOptions&);

}  // namespace antichain
