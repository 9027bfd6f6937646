// A loss may be a mean over something else than samples: over the labels that are not ignored, each with the
// weight of its class; or a sum (framework/loss_mean.h). What it divides by is that of the whole batch,
// over all micro-batches and all replicas, and is known before the first backward: every rank that has the
// loss draws the batch's targets itself. A mean over micro-batches of their means would be another number
// wherever micro-batches count differently.
#pragma once

#include <map>
#include <vector>

#include "framework/graph.h"
#include "pipeline/run/step.h"

namespace antichain {

class LossMeans {
 public:
  // Of the losses among these nodes.
  LossMeans(const Graph&, const std::vector<NodeId>& nodes);

  // Returns what the source's current batch adds to the divisors of the losses that count, by loss.
  using Counts = std::map<NodeId, double>;
  Counts counts(BatchSource&, int microbatches) const;
  // Returns StepInput::loss_weights, for `samples` samples of which the sums are divided by `counts`. The
  // reported loss, which is divided by the number of samples, is the mean then.
  std::map<NodeId, double> weights(const Counts&, double samples, int batch) const;
  std::map<NodeId, double> weights_of_batch(BatchSource& source, int microbatches, int batch) const {
    return weights(counts(source, microbatches), batch, batch);
  }
  bool counting() const { return !counting_.empty(); }

 private:
  const Graph& graph_;
  std::vector<NodeId> counting_, sums_;
};

}  // namespace antichain
