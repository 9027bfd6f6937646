// Dropout: Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", JMLR 2014.
//
//   train     y = kept ? x / (1 − p) : 0, each element kept with probability 1 − p
//   evaluate  y = x
//
// Whether an element is kept is a pure function of (seed, node name, step, the sample's position in the
// batch, the element's logical index c H W + h W + w): see DropoutMask. So it depends neither on the cut, nor
// on the micro-batch size, nor on the layout; backward draws it again and nothing is stashed.
#pragma once

#include "framework/graph.h"
#include "framework/random.h"

namespace antichain {

class Dropout : public Op {
 public:
  Dropout(double p, std::string node_name);  // Error unless 0 ≤ p < 1
  std::string_view type() const override { return "dropout"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const double p;
  const std::string node_name;
};

// The mask of one sample at one step; every engine asks this class, or draws the same numbers.
class DropoutMask {
 public:
  // `sample` is the position within the micro-batch.
  DropoutMask(const Dropout& op, const DropoutKey& key, int64_t sample)
      : random_(mix(mix(key.seed, hash_bytes(op.node_name)), key.step)),
        sample_(key.first_sample + uint64_t(sample)),
        threshold_(uint64_t(op.p * 0x1p32)) {}

  // Whether each of the logical elements 4 · quad … 4 · quad + 3 of the sample is kept.
  std::array<bool, 4> kept(int64_t quad) const {
    const auto w = random_.words(uint64_t(quad), sample_);
    return {w[0] >= threshold_, w[1] >= threshold_, w[2] >= threshold_, w[3] >= threshold_};
  }

 private:
  Philox random_;
  uint64_t sample_;
  uint64_t threshold_;  // of 2^32: words below it are dropped
};

NodeId dropout(Graph&, std::string name, NodeId x, double p = 0.5);

}  // namespace antichain
