// These are the options of a model, and how each model begins and ends. A model is a function from options
// to a Graph; every one here has two inputs, "images" (N x 3 x H x W) and "labels" (N, or soft: N x
// classes), and ends in a node "loss".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/graph.h"

namespace antichain {

enum class Form { cifar, imagenet };

struct ModelOptions {
  Form form = Form::cifar;
  int microbatch = 32;  // N
  int classes = 0;      // 0: the form's usual 10 or 1,000
  int image = 0;        // H = W, in pixels; 0: the form's usual 32 or 224 (Inception-v3: 299)
  float label_smoothing = 0;
  bool soft_labels = false;  // "labels" are each class's share, N x classes, as mixed images have them
  // The share that dropout drops, and the share of the samples that pass the last residual block by its
  // shortcut only (layers/stochastic_depth.h). Empty: what is usual for the model.
  std::optional<double> dropout = {}, stochastic_depth = {};
  double aux = 0;  // weight of Inception-v3's auxiliary loss (0.4 is usual); 0 leaves its head out
  std::vector<std::string> freeze =
      {};  // patterns of the parameters that are not trained (framework/freeze.h)
};

// UsualOptions say what a model takes where its options leave it open.
struct UsualOptions {
  int image = 224;  // H = W of the ImageNet form, in pixels
  double dropout = 0.5, stochastic_depth = 0;
  int channels = 3;  // of the images; 1: grey
};

// Returns the options with the usual value in the place of every 0 and of everything that is empty. Each
// model's function begins with this.
ModelOptions completed(ModelOptions, const UsualOptions& usual = {});

// All models share these: their inputs, and the loss of their logits (N x classes). An auxiliary head's loss
// has less than the full weight in the training objective.
struct ModelInputs {
  NodeId images, labels;
};
ModelInputs add_inputs(Graph&, const ModelOptions&);
NodeId add_loss(Graph&, const ModelInputs&, NodeId logits, const ModelOptions&, std::string name = "loss",
                double weight = 1);

}  // namespace antichain
