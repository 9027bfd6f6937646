#include "models/resnext.h"

#include "models/residual.h"

namespace antichain {

Graph resnext50(const ModelOptions& options) {
  return residual_network(
      "resnext50", {.block = Block::bottleneck, .blocks = {3, 4, 6, 3}, .groups = 32, .group_width = 4},
      options);
}

Graph resnext101(const ModelOptions& options) {
  return residual_network(
      "resnext101", {.block = Block::bottleneck, .blocks = {3, 4, 23, 3}, .groups = 32, .group_width = 8},
      options);
}

}  // namespace antichain
