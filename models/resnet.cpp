#include "models/resnet.h"

#include "models/residual.h"

namespace antichain {

Graph resnet18(const ModelOptions& options) {
  return residual_network("resnet18", {.block = Block::basic, .blocks = {2, 2, 2, 2}}, options);
}

Graph resnet50(const ModelOptions& options) {
  return residual_network("resnet50", {.block = Block::bottleneck, .blocks = {3, 4, 6, 3}}, options);
}

Graph resnet101(const ModelOptions& options) {
  return residual_network("resnet101", {.block = Block::bottleneck, .blocks = {3, 4, 23, 3}}, options);
}

Graph resnet20(const ModelOptions& options) {
  return residual_network("resnet20", {.blocks = {3, 3, 3}, .channels = 16}, options);
}

Graph resnet32(const ModelOptions& options) {
  return residual_network("resnet32", {.blocks = {5, 5, 5}, .channels = 16}, options);
}

Graph resnet56(const ModelOptions& options) {
  return residual_network("resnet56", {.blocks = {9, 9, 9}, .channels = 16}, options);
}

}  // namespace antichain
