// A loss may be a mean over something else than samples: over the labels that are not ignored, each with the
// weight of its class; or a sum (framework/loss_mean.h). What it divides by is that of the whole batch,
// over all micro-batches and all replicas, and is known before the first backward: every rank that has the
// loss draws the batch's targets itself. A mean over micro-batches of their means would be another number
// wherever micro-batches count differently.
#pragma once

#include <map>
#include <vector>

#include "framework/graph.h"
#include "framework/loss_mean.h"
#include "pipeline/run/step.h"

namespace antichain {

class LossMeans {
 public:
  // Of the losses among these nodes.
  LossMeans(const Graph&, const std::vector<NodeId>& nodes);

  // Returns what the source's current batch adds to the divisors of the losses that count, by loss.
  using Counts = std::map<NodeId, LossCount>;
  Counts counts(BatchSource&, int microbatches) const;
  static void add(const Counts& part, Counts& all);
  // Returns the means of a step, for `samples` samples of which the sums are divided by `counts`. The
  // reported loss and hits, which are divided by the number of samples, are means then.
  StepMeans means(const Counts&, double samples, int batch) const;
  // Returns those of a batch, where a loss of which nothing counts is 0, as its sum is.
  StepMeans means_of_batch(BatchSource& source, int microbatches, int batch) const;
  bool counting() const { return !counting_.empty(); }

 private:
  const Graph& graph_;
  std::vector<NodeId> counting_, sums_;
};

}  // namespace antichain
