// The models known by name, each in two forms:
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

#include "models/options.h"
#include "models/recipe.h"

namespace antichain {

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

}  // namespace antichain
