// The models known by name. A model is a function from options to a Graph; every one here has two inputs,
// "images" (N x 3 x 32 x 32) and "labels" (N), and ends in a node "loss".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"

namespace antichain {

struct ModelOptions {
  int microbatch = 32;  // N
  int classes = 10;
  int image = 32;  // H = W, in pixels
  float label_smoothing = 0;
};

// Error (usage) that lists the known names, and suggests the nearest.
Graph make_model(std::string_view name, const ModelOptions& = {});
std::vector<std::string> model_names();

// What all models share: their inputs, and the loss of their logits (N x classes).
struct ModelInputs {
  NodeId images, labels;
};
ModelInputs add_inputs(Graph&, const ModelOptions&);
NodeId add_loss(Graph&, const ModelInputs&, NodeId logits, const ModelOptions&);

}  // namespace antichain
