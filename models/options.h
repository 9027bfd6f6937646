// These are the options of a model, and how each model begins and ends. A model is a function from options
// to a Graph that ends in a node "loss". One that reads images has the inputs
//
//   images     N x 3 x H x W, float32
//   labels     N, int32, or soft: N x classes, float32
//
// and one that reads tokens
//
//   tokens     N x T, int32, 0 … vocabulary − 1
//   labels     N x T, int32: the token that is right at each position; −1 and −100 are ignored
//   documents  N x T, int32, where samples are packed: attention stays within equal numbers; −1 is padding
//   positions  N x T, int32, where samples are packed: each token's place in its document, from 0
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
  int sequence = 0;     // T, tokens of a sample; 0: what is usual for the model
  int vocabulary = 0;   // different tokens; 0: what is usual for the model
  bool packed = false;  // a sample has several documents, one behind the other
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
  int channels = 3;                  // of the images; 1: grey
  int sequence = 0, vocabulary = 0;  // of a model that reads tokens
};

// Returns the options with the usual value in the place of every 0 and of everything that is empty. Each
// model's function begins with this.
ModelOptions completed(ModelOptions, const UsualOptions& usual = {});

struct ImageInputs {
  NodeId images, labels;
};
ImageInputs add_image_inputs(Graph&, const ModelOptions&);

struct TokenInputs {
  NodeId tokens, labels, documents = -1, positions = -1;  // −1: the samples are not packed
};
TokenInputs add_token_inputs(Graph&, const ModelOptions&);

// Adds the loss of logits, N x classes. An auxiliary head's loss has less than the full weight in the
// training objective.
NodeId add_loss(Graph&, NodeId labels, NodeId logits, const ModelOptions&, std::string name = "loss",
                double weight = 1);
// Adds the loss of each token's logits, N x T x vocabulary: a mean over the labels that are not ignored.
NodeId add_token_loss(Graph&, NodeId labels, NodeId logits, const ModelOptions&);

}  // namespace antichain
