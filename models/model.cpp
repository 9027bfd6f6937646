#include "models/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/error.h"
#include "framework/freeze.h"
#include "framework/known_names.h"
#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/stochastic_depth.h"
#include "models/alexnet.h"
#include "models/bert.h"
#include "models/convnext.h"
#include "models/densenet.h"
#include "models/efficientnet.h"
#include "models/gpt.h"
#include "models/inception.h"
#include "models/llama.h"
#include "models/mobilenet_v2.h"
#include "models/mobilenet_v3.h"
#include "models/resnet.h"
#include "models/resnext.h"
#include "models/squeezenet.h"
#include "models/vgg.h"
#include "models/vit.h"

namespace antichain {
namespace {

// Returns the shipped models, then the user's.
std::vector<NamedModel>& models() {
  static std::vector<NamedModel> table = {
      {"alexnet", alexnet},
      {"bert_base", bert_base, {.reads = Reads::tokens, .usual = usual_bert_base}},
      {"convnext_tiny", convnext_tiny, {.usual = usual_convnext_tiny}},
      {"densenet121", densenet121},
      {"efficientnet_b0", efficientnet_b0, {.usual = usual_efficientnet_b0}},
      {"gpt2", gpt2, {.reads = Reads::tokens, .usual = usual_gpt2}},
      {"gpt_baby", gpt_baby, {.reads = Reads::tokens, .usual = usual_gpt_baby}},
      {"gpt_nano", gpt_nano, {.reads = Reads::tokens, .usual = usual_gpt_nano}},
      {"inception_v3", inception_v3, {.auxiliary = true, .usual = usual_inception_v3}},
      {"llama", llama, {.reads = Reads::tokens, .usual = usual_llama}},
      {"mobilenet_v2", mobilenet_v2, {.usual = usual_mobilenet_v2}},
      {"mobilenet_v3_large", mobilenet_v3_large, {.usual = usual_mobilenet_v3_large}},
      {"resnet18", resnet18},
      {"resnet20", resnet20, {.cifar_only = true}},
      {"resnet32", resnet32, {.cifar_only = true}},
      {"resnet50", resnet50},
      {"resnet56", resnet56, {.cifar_only = true}},
      {"resnet101", resnet101},
      {"resnext50", resnext50},
      {"resnext101", resnext101},
      {"squeezenet1_0", squeezenet1_0},
      {"vgg16", vgg16},
      {"vit_b_16", vit_b_16, {.usual = usual_vit}},
      {"vit_tiny", vit_tiny, {.usual = usual_vit}},
  };
  return table;
}

auto find(std::string_view name) {
  const auto found = std::ranges::find(models(), name, &NamedModel::name);
  if (found != models().end() || name != "squeezenet") return found;
  return std::ranges::find(models(), "squeezenet1_0", &NamedModel::name);
}

// Checks what training relies on and a user's model may lack.
void check_trainable(const Graph& graph, std::string_view name, const ModelOptions& options) {
  if (std::ranges::none_of(graph, [](const Node& node) { return node.role() == Role::loss; }))
    throw Error(fmt::format("the model '{}' has no loss", name), "end it with add_loss()");
  if (graph.microbatch() != options.microbatch)
    throw Error(fmt::format("the model '{}' was asked for micro-batches of {} and has {}", name,
                            options.microbatch, graph.microbatch()),
                "begin it with add_image_inputs() or add_token_inputs(), which takes them from the options");
}

// Checks that no option is for a model that reads something else. A network of a file checks its own.
void check_read(const NamedModel& model, const ModelOptions& o) {
  if (model.traits.reads == Reads::arrays) return;
  const bool tokens = model.traits.reads == Reads::tokens;
  const auto refuse = [&](bool given, const char* what, const char* hint) {
    if (given)
      throw Error(
          fmt::format("'{}' reads {}, but {} given for it", model.name, tokens ? "tokens" : "images", what),
          hint, ExitCode::usage);
  };
  if (tokens) {
    refuse(o.form != Form::cifar, "a form for images is", "leave out --form");
    refuse(o.image != 0, "a size of images is", "give a data set of tokens; --sequence is how many it reads");
    refuse(o.classes != 0, "a number of classes is", "--vocabulary is how many different tokens there are");
    refuse(o.soft_labels, "soft labels are", "leave out --soft-labels, --mixup and --cutmix");
  } else {
    refuse(o.sequence != 0 || o.packed, "a length of sequences is", "leave out --sequence");
    refuse(o.vocabulary != 0, "a vocabulary is", "--classes is how many classes there are");
  }
}

bool has_dropout(const Op& op) {
  const auto* attention = dynamic_cast<const Attention*>(&op);
  return dynamic_cast<const Dropout*>(&op) || (attention && attention->options.dropout > 0);
}
bool has_stochastic_depth(const Op& op) { return dynamic_cast<const StochasticDepth*>(&op) != nullptr; }

void check_has(const Graph& graph, const std::optional<double>& share, const std::string& what,
               bool (*has)(const Op&)) {
  if (share.value_or(0) > 0 && std::ranges::none_of(graph, [=](const Node& node) { return has(*node.op); }))
    throw Error(fmt::format("the model '{}' has no {}, but a share is given for it", graph.model(), what),
                "leave it out", ExitCode::usage);
}

}  // namespace

const NamedModel& known_model(std::string_view name) {
  if (const auto found = find(name); found != models().end()) return *found;
  refuse_name("model", std::string(name), model_names());
}

Graph make_model(const NamedModel& model, const ModelOptions& options) {
  check_read(model, options);
  if (model.traits.cifar_only && options.form == Form::imagenet)
    throw Error(fmt::format("'{}' is a network for 32 x 32 images and has no ImageNet form", model.name),
                "use resnet18, or the CIFAR form", ExitCode::usage);
  if (!(options.aux >= 0))
    throw Error(fmt::format("an auxiliary loss cannot weigh {}", options.aux), "0.4 is usual",
                ExitCode::usage);
  if (options.aux > 0 && !model.traits.auxiliary)
    throw Error(fmt::format("'{}' has no auxiliary head", model.name), "inception_v3 has one",
                ExitCode::usage);
  Graph graph = model.make(options);
  if (!options.freeze.empty()) graph = freeze_matching(graph, options.freeze);
  check_trains(graph);
  check_trainable(graph, model.name, options);
  check_has(graph, options.dropout, "dropout", has_dropout);
  check_has(graph, options.stochastic_depth, "stochastic depth", has_stochastic_depth);
  return graph;
}

void register_model(NamedModel model) {
  const std::string how = "write {\"name\", function}";
  if (model.name.empty()) throw Error("a model of one's own has no name", how, ExitCode::usage);
  if (!model.make)
    throw Error(fmt::format("the model '{}' has no function", model.name), how, ExitCode::usage);
  if (find(model.name) != models().end())
    throw Error(fmt::format("there is already a model '{}'", model.name), "choose another name",
                ExitCode::usage);
  models().push_back(std::move(model));
}

NamedModel model_of(std::shared_ptr<const GraphFile> file) {
  return {.name = file->model(),
          .make = [file](const ModelOptions& options) { return file->graph(options); },
          .traits = {.reads = Reads::arrays, .usual = file->usual()},
          .recipe = general_recipe()};
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const NamedModel& model : models()) names.push_back(model.name);
  return names;
}

Recipe recipe_of(const NamedModel& model) {
  return model.recipe ? *model.recipe : shipped_recipe(model.name);
}

}  // namespace antichain
