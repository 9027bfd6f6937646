#include "models/residual.h"

#include <fmt/format.h>

#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/global_pool.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"

namespace antichain {
namespace {

// Weights start from N(0, 2 / fan_out), as in torchvision's ResNet: He et al., "Delving Deep into
// Rectifiers", ICCV 2015. It counts fan_out over all groups.
NodeId conv(Graph& g, std::string name, NodeId x, int64_t out, int kernel, int stride, int groups = 1) {
  return conv2d(g, std::move(name), x,
                {.out = out,
                 .kernel = kernel,
                 .stride = stride,
                 .pad = kernel / 2,
                 .groups = groups,
                 .bias = false,
                 .weight_init = Initialiser::kaiming_normal_fan_out(out * kernel * kernel)});
}

// Where a block changes the shape, the shortcut is a 1 x 1 convolution with batch norm (the paper's option
// B).
NodeId shortcut(Graph& g, const std::string& name, NodeId x, int64_t out, int stride) {
  if (stride == 1 && g.shape(x)[1] == out) return x;
  x = conv(g, name + ".downsample.0", x, out, 1, stride);
  return batch_norm(g, name + ".downsample.1", x);
}

// He et al. 2016, figure 2: two 3 x 3 convolutions beside a shortcut.
//
//   x ─ conv1 ─ bn1 ─ relu1 ─ conv2 ─ bn2 ─ add ─ relu2
//    └────────── (downsample.0 ─ .1) ────────┘
NodeId basic_block(Graph& g, const std::string& name, NodeId x, int64_t channels, int stride) {
  NodeId y = conv(g, name + ".conv1", x, channels, 3, stride);
  y = batch_norm(g, name + ".bn1", y);
  y = relu(g, name + ".relu1", y);
  y = conv(g, name + ".conv2", y, channels, 3, 1);
  y = batch_norm(g, name + ".bn2", y);
  y = add(g, name + ".add", y, shortcut(g, name, x, channels, stride));
  return relu(g, name + ".relu2", y);
}

// He et al. 2016, figure 5, right: 1 x 1, 3 x 3, 1 x 1. As in torchvision the 3 x 3 has the stride (in the
// paper the first 1 x 1 has it). With groups it is Xie et al. 2017, figure 3 (c).
NodeId bottleneck(Graph& g, const std::string& name, NodeId x, const ResidualTable& t, int64_t channels,
                  int stride, float last_weight) {
  const int64_t width = channels * t.group_width / 64 * t.groups;
  NodeId y = conv(g, name + ".conv1", x, width, 1, 1);
  y = batch_norm(g, name + ".bn1", y);
  y = relu(g, name + ".relu1", y);
  y = conv(g, name + ".conv2", y, width, 3, stride, t.groups);
  y = batch_norm(g, name + ".bn2", y);
  y = relu(g, name + ".relu2", y);
  y = conv(g, name + ".conv3", y, 4 * channels, 1, 1);
  y = batch_norm(g, name + ".bn3", y, {.first_weight = last_weight});
  y = add(g, name + ".add", y, shortcut(g, name, x, 4 * channels, stride));
  return relu(g, name + ".relu3", y);
}

NodeId stem(Graph& g, NodeId images, int64_t channels, Form form) {
  const bool large = form == Form::imagenet;
  NodeId x = conv(g, "conv1", images, channels, large ? 7 : 3, large ? 2 : 1);
  x = relu(g, "relu", batch_norm(g, "bn1", x));
  return large ? max_pool(g, "maxpool", x, {.kernel = 3, .stride = 2, .pad = 1}) : x;
}

}  // namespace

Graph residual_network(std::string name, const ResidualTable& table, const ModelOptions& options) {
  const ModelOptions o = completed(options);
  Graph g(std::move(name));
  const ImageInputs in = add_image_inputs(g, o);
  // torchvision's weights start at 1. On CIFAR-10, ResNet-50 tolerates several times the rate when each block
  // starts as its shortcut: Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017,
  // section 5.1.
  const float last_weight = o.form == Form::cifar ? 0 : 1;
  NodeId x = stem(g, in.images, table.channels, o.form);
  for (size_t stage = 0; stage < table.blocks.size(); ++stage) {
    const int64_t channels = table.channels << stage;
    for (int i = 0; i < table.blocks[stage]; ++i) {
      const std::string block = fmt::format("layer{}.{}", stage + 1, i);
      const int stride = stage > 0 && i == 0 ? 2 : 1;
      x = table.block == Block::basic ? basic_block(g, block, x, channels, stride)
                                      : bottleneck(g, block, x, table, channels, stride, last_weight);
    }
  }
  x = flatten(g, "flatten", global_average_pool(g, "avgpool", x));
  add_loss(g, in.labels, linear(g, "fc", x, {.out = o.classes}), o);
  return g;
}

}  // namespace antichain
