#include "models/options.h"

#include <utility>

#include "layers/input.h"
#include "layers/softmax_cross_entropy.h"

namespace antichain {

ModelOptions completed(ModelOptions o, const UsualOptions& usual) {
  const bool cifar = o.form == Form::cifar;
  if (o.classes == 0) o.classes = cifar ? 10 : 1000;
  if (o.image == 0) o.image = cifar ? 32 : usual.image;
  if (!o.dropout) o.dropout = usual.dropout;
  if (!o.stochastic_depth) o.stochastic_depth = usual.stochastic_depth;
  if (o.sequence == 0) o.sequence = usual.sequence;
  if (o.vocabulary == 0) o.vocabulary = usual.vocabulary;
  return o;
}

ImageInputs add_image_inputs(Graph& graph, const ModelOptions& options) {
  const NodeId images = input_images(graph, "images", {options.microbatch, 3, options.image, options.image});
  if (options.soft_labels)
    return {images, input_soft_labels(graph, "labels", options.microbatch, options.classes)};
  return {images, input_labels(graph, "labels", options.microbatch)};
}

TokenInputs add_token_inputs(Graph& graph, const ModelOptions& options) {
  const auto input = [&](const char* name) {
    return input_integers(graph, name, {options.microbatch, options.sequence});
  };
  TokenInputs in{.tokens = input("tokens"), .labels = input("labels")};
  if (options.packed) in.documents = input("documents"), in.positions = input("positions");
  return in;
}

NodeId add_loss(Graph& graph, NodeId labels, NodeId logits, const ModelOptions& options, std::string name,
                double weight) {
  return softmax_cross_entropy(graph, std::move(name), logits, labels,
                               {.label_smoothing = options.label_smoothing, .weight = weight});
}

NodeId add_token_loss(Graph& graph, NodeId labels, NodeId logits, const ModelOptions& options) {
  return softmax_cross_entropy(
      graph, "loss", logits, labels,
      {.label_smoothing = options.label_smoothing, .ignore_index = -100, .classes_last = true});
}

}  // namespace antichain
