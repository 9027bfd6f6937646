// Builds the block that MobileNet-v2, MobileNet-v3 and EfficientNet share, the inverted residual: Sandler et
// al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018, section 3.3. It is wide between
// two narrow ends, and the shortcut leads from narrow to narrow.
//
//   x ─ expand 1 x 1 ─ depthwise ─ (gate) ─ project 1 x 1 ─ (stochastic depth) ─ add
//    └───────────────────────────────────────────────────────────────────────────┘
//
// Where nothing expands, the first convolution is missing. The shortcut exists where neither channels nor
// pixels change. Every convolution is followed by batch norm, and the first two by an activation as well.
#pragma once

#include <string>

#include "framework/graph.h"
#include "layers/activate.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/relu.h"

namespace antichain {

using ActivationNode = NodeId (*)(Graph&, std::string name, NodeId x);

// Convolutions start from N(0, 2 / fan_out), counted over all groups, and their biases at 0, as in
// torchvision.
struct NormedConv {
  int64_t out = 0;  // filters
  int kernel = 1, stride = 1;
  int groups = 1;
  BatchNormOptions norm = {};
  ActivationNode activation = nullptr;
};

// Adds convolution, batch norm and activation as NAME.0, NAME.1 and NAME.2, as torchvision's
// Conv2dNormActivation. The image keeps its size, except for the stride.
NodeId normed_conv(Graph&, const std::string& name, NodeId x, const NormedConv&);

struct InvertedResidual {
  int64_t expanded = 0, out = 0;  // channels within the block, and behind it
  int kernel = 3, stride = 1;     // of the depthwise convolution
  // The gate is squeeze and excitation: Hu, Shen & Sun, "Squeeze-and-Excitation Networks", CVPR 2018.
  int64_t squeezed = 0;  // its channels in the middle; 0: the block has no gate
  ActivationNode squeeze_activation = relu, gate = sigmoid;
  BatchNormOptions norm = {};
  ActivationNode activation = nullptr;
  double stochastic_depth = 0;   // how often a sample passes by the shortcut only
  bool flat_projection = false;  // MobileNet-v2 numbers the projection's convolution and norm as parts
};

// `parts` is the module that numbers the parts: "features.2.conv", in the block "features.2".
NodeId inverted_residual(Graph&, const std::string& block, const std::string& parts, NodeId x,
                         const InvertedResidual&);

}  // namespace antichain
