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
  return o;
}

ModelInputs add_inputs(Graph& graph, const ModelOptions& options) {
  const NodeId images = input_images(graph, "images", {options.microbatch, 3, options.image, options.image});
  if (options.soft_labels)
    return {images, input_soft_labels(graph, "labels", options.microbatch, options.classes)};
  return {images, input_labels(graph, "labels", options.microbatch)};
}

NodeId add_loss(Graph& graph, const ModelInputs& inputs, NodeId logits, const ModelOptions& options,
                std::string name, double weight) {
  return softmax_cross_entropy(graph, std::move(name), logits, inputs.labels,
                               {.label_smoothing = options.label_smoothing, .weight = weight});
}

}  // namespace antichain
