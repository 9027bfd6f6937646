// Makes the models known by name. Those that read images have two forms:
//
//   imagenet   as the paper's table has it, and torchvision: parameters and buffers have the names and shapes
//              of its state_dict ("layer1.0.conv1.weight"), and start from its distributions
//   cifar      for 32 x 32 images: what each model changes stands in its header, most often stem and first
//              pools
//
// Those that read tokens have one, with the names and shapes of Hugging Face's state_dict.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph_file.h"
#include "models/options.h"
#include "models/recipe.h"

namespace antichain {

enum class Reads { images, tokens, arrays };  // arrays: whatever inputs a file's network has

// ModelTraits say how a model differs from the others.
struct ModelTraits {
  Reads reads = Reads::images;
  bool cifar_only = false, auxiliary = false;  // no ImageNet form; an auxiliary head, which `aux` weighs
  UsualOptions usual = {};                     // what its function gives to completed()
};
struct NamedModel {
  std::string name;
  std::function<Graph(const ModelOptions&)> make;
  ModelTraits traits = {};
  std::optional<Recipe> recipe = {};  // of a user's model; without it the general one
};

// Adds a user's model to the known ones; call it before any thread makes one. Throws Error (usage) when it
// has no name, no function, or the name of another.
void register_model(NamedModel);

// Throws Error (usage) when there is no such model; it lists the known names, and suggests the nearest.
// "squeezenet" means "squeezenet1_0".
const NamedModel& known_model(std::string_view name);
std::vector<std::string> model_names();

// Returns the network of a graph.json as a model of its name, with the general recipe.
NamedModel model_of(std::shared_ptr<const GraphFile>);

// Throws Error (usage) when the model lacks this form or an auxiliary head, when an option is for what it
// does not read, when nothing is what should be frozen, or everything is. Throws Error when its graph has no
// loss or another micro-batch.
Graph make_model(const NamedModel&, const ModelOptions& = {});
inline Graph make_model(std::string_view name, const ModelOptions& options = {}) {
  return make_model(known_model(name), options);
}

// Returns how the model is trained by default.
Recipe recipe_of(const NamedModel&);
inline Recipe recipe_of(std::string_view name) { return recipe_of(known_model(name)); }

}  // namespace antichain
