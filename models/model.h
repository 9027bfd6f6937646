// The models known by name, each in two forms. A model is a function from options to a Graph; every one here
// has two inputs, "images" (N x 3 x H x W) and "labels" (N), and ends in a node "loss".
//
//   imagenet   as the paper's table has it, and torchvision: parameters and buffers have the names and shapes
//              of its state_dict ("layer1.0.conv1.weight"), and start from its distributions
//   cifar      for 32 x 32 images: what each model changes stands in its header, most often stem and first
//              pools
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"
#include "models/recipe.h"

namespace antichain {

enum class Form { cifar, imagenet };

struct ModelOptions {
  Form form = Form::cifar;
  int microbatch = 32;  // N
  int classes = 0;      // 0: the form's usual 10 or 1,000
  int image = 0;        // H = W, in pixels; 0: the form's usual 32 or 224 (Inception-v3: 299)
  float label_smoothing = 0;
  double dropout = 0.5;  // of the models that have it: AlexNet, VGG, SqueezeNet, Inception-v3
  double aux = 0;        // weight of Inception-v3's auxiliary loss (0.4 is usual); 0 leaves its head out
};

// What a model has in which the others differ.
struct ModelTraits {
  bool cifar_only = false, auxiliary = false;  // no ImageNet form; an auxiliary head, which `aux` weighs
};
struct NamedModel {
  std::string name;
  std::function<Graph(const ModelOptions&)> make;
  ModelTraits traits = {};
  std::optional<Recipe> recipe = {};  // of one's own model; without it the general one
};

// Adds a model of one's own to the known ones: before any thread asks for one. Error (usage) when it has no
// name, no function, or the name of another.
void register_model(NamedModel);

// Error (usage) when there is no such model (it lists the known names, and suggests the nearest), not in this
// form, or not with an auxiliary head; Error when its graph has no loss or another micro-batch. "squeezenet"
// is understood as "squeezenet1_0".
Graph make_model(std::string_view name, const ModelOptions& = {});
std::vector<std::string> model_names();

// How it is trained where nobody says otherwise. Error (usage) when there is no such model.
Recipe recipe_of(std::string_view name);

// The options with every 0 replaced by what is usual: how each model's function begins.
ModelOptions completed(ModelOptions, int imagenet_image = 224);

// What all models share: their inputs, and the loss of their logits (N x classes). An auxiliary head's loss
// has less than the full weight in the training objective.
struct ModelInputs {
  NodeId images, labels;
};
ModelInputs add_inputs(Graph&, const ModelOptions&);
NodeId add_loss(Graph&, const ModelInputs&, NodeId logits, const ModelOptions&, std::string name = "loss",
                double weight = 1);

}  // namespace antichain
