// What every model here begins and ends with.
#pragma once

#include "layers/input.h"
#include "layers/softmax_cross_entropy.h"
#include "models/model.h"

namespace antichain {

inline NodeId images(Graph& g, const ModelOptions& o, int64_t side = 32) {
  return input_images(g, "images", {o.microbatch, 3, side, side});
}

inline void loss(Graph& g, const ModelOptions& o, NodeId logits) {
  const NodeId labels = input_labels(g, "labels", o.microbatch);
  softmax_cross_entropy(g, "loss", logits, labels, {.label_smoothing = o.label_smoothing});
}

}  // namespace antichain
