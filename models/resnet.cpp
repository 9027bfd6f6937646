#include "models/resnet.h"

#include <fmt/format.h>

#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "layers/relu.h"

namespace antichain {
namespace {

// Weights N(0, 2 / fan_out), as torchvision's ResNet: He et al., "Delving Deep into Rectifiers", ICCV 2015.
NodeId conv(Graph& g, std::string name, NodeId x, int64_t out, int kernel, int stride) {
  return conv2d(g, std::move(name), x,
                {.out = out,
                 .kernel = kernel,
                 .stride = stride,
                 .pad = kernel / 2,
                 .bias = false,
                 .weight_init = Initialiser::kaiming_normal_fan_out(out * kernel * kernel)});
}

// Figure 2: two 3 x 3 convolutions beside a shortcut.
//
//   x ─ conv1 ─ bn1 ─ relu1 ─ conv2 ─ bn2 ─ add ─ relu2
//    └────────── (downsample.0 ─ .1) ────────┘
NodeId basic_block(Graph& g, const std::string& name, NodeId x, int64_t out, int stride) {
  NodeId y = conv(g, name + ".conv1", x, out, 3, stride);
  y = batch_norm(g, name + ".bn1", y);
  y = relu(g, name + ".relu1", y);
  y = conv(g, name + ".conv2", y, out, 3, 1);
  y = batch_norm(g, name + ".bn2", y);
  NodeId shortcut = x;
  if (stride != 1 || g.shape(x)[1] != out) {
    shortcut = conv(g, name + ".downsample.0", x, out, 1, stride);
    shortcut = batch_norm(g, name + ".downsample.1", shortcut);
  }
  return relu(g, name + ".relu2", add(g, name + ".add", y, shortcut));
}

struct Stage {
  int64_t channels;
  int blocks;
};

// A stem of the first stage's width, then the stages; each but the first halves the image.
Graph resnet(std::string name, std::initializer_list<Stage> stages, const ModelOptions& options) {
  Graph g(std::move(name));
  const ModelInputs in = add_inputs(g, options);
  NodeId x = conv(g, "conv1", in.images, stages.begin()->channels, 3, 1);
  x = relu(g, "relu", batch_norm(g, "bn1", x));
  int layer = 0;
  for (const Stage& stage : stages) {
    ++layer;
    for (int block = 0; block < stage.blocks; ++block) {
      const int stride = layer > 1 && block == 0 ? 2 : 1;
      x = basic_block(g, fmt::format("layer{}.{}", layer, block), x, stage.channels, stride);
    }
  }
  x = flatten(g, "flatten", global_average_pool(g, "avgpool", x));
  add_loss(g, in, linear(g, "fc", x, {.out = options.classes}), options);
  return g;
}

}  // namespace

Graph resnet20(const ModelOptions& options) {
  return resnet("resnet20", {{16, 3}, {32, 3}, {64, 3}}, options);
}

Graph resnet18(const ModelOptions& options) {
  return resnet("resnet18", {{64, 2}, {128, 2}, {256, 2}, {512, 2}}, options);
}

}  // namespace antichain
