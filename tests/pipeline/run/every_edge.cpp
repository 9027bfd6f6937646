#include "tests/pipeline/run/every_edge.h"

#include "framework/freeze.h"
#include "layers/add.h"
#include "layers/batch_norm.h"
#include "layers/concat.h"
#include "layers/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/relu.h"
#include "models/model.h"
#include "tests/pipeline/run/shared_weights.h"

namespace antichain::test {

Graph every_edge(const ModelOptions& options) {
  ModelOptions o = completed(options, {.dropout = 0.25});
  if (options.image == 0) o.image = 8;
  Graph g("every_edge");
  const ImageInputs in = add_image_inputs(g, o);
  const auto conv = [&](std::string name, NodeId x, int64_t out, int kernel) {
    return conv2d(g, std::move(name), x, {.out = out, .kernel = kernel, .pad = kernel / 2, .bias = out < 16});
  };
  const NodeId stem = relu(g, "stem.relu", batch_norm(g, "stem.norm", conv("stem", in.images, 16, 3)));
  const NodeId branches = concat(g, "branches", {conv("narrow", stem, 4, 1), conv("wide", stem, 12, 3)});
  const NodeId trunk = relu(g, "norm.relu", add(g, "norm.add", batch_norm(g, "norm", branches), stem));
  const NodeId head = linear(g, "aux.fc", flatten(g, "aux.flatten", trunk), {.out = o.classes});
  add_loss(g, in.labels, head, o, "aux.loss", o.aux > 0 ? o.aux : 0.3);
  NodeId x = max_pool(g, "pool", add(g, "skip", conv("conv", trunk, 16, 3), stem));
  x = dropout(g, "dropout", flatten(g, "flatten", x), *o.dropout);
  add_loss(g, in.labels, linear(g, "fc", x, {.out = o.classes}), o);
  return g;
}

Graph network(std::string_view name, const ModelOptions& options) {
  if (name == "every_edge") return freeze_matching(every_edge(options), options.freeze);
  if (name == "repeated") return repeated(options);
  if (name == "siamese") return siamese(options);
  if (name == "small_gpt") return small_gpt(options);
  if (name == "small_llama") return small_llama(options);
  if (name == "tied") return tied(options);
  return name == "unrolled" ? unrolled(options) : make_model(name, options);
}

}  // namespace antichain::test
