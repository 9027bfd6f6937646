// A loss node gives a number for each sample. The loss of a batch is their sum, divided by the number of
// samples; or, of an operator that is a LossMean too, by the sum of its counts over the whole batch, all
// micro-batches and replicas; or by nothing.
#pragma once

#include <span>

#include "framework/graph.h"

namespace antichain {

enum class LossDivisor { samples, counts, one };

// A LossCount says how much some samples count in the divisor of a loss, and as hits. Where only a part of a
// sample's labels counts, the sample has that part of a hit at most.
struct LossCount {
  double divisor = 0, hits = 0;
};

class LossMean {
 public:
  virtual ~LossMean() = default;
  virtual LossDivisor divisor() const = 0;
  // Returns what these samples add to the divisor. `x` are the inputs of the node that are inputs of the
  // network, in host memory, and empty elsewhere.
  virtual LossCount count(std::span<const Tensor> x) const = 0;
  // Says whether the second number of a sample is a hit, so that there is an accuracy.
  virtual bool has_hits() const { return true; }
};

// Says whether the model's own loss, its last node, has hits.
inline bool has_hits(const Graph& graph) {
  const auto* mean = dynamic_cast<const LossMean*>(graph[graph.size() - 1].op.get());
  return !mean || mean->has_hits();
}

}  // namespace antichain
