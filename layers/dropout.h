// Dropout zeroes random elements in training: Srivastava et al., "Dropout: A Simple Way to Prevent Neural
// Networks from Overfitting", JMLR 2014.
//
//   train     y = kept ? x / (1 − p) : 0, each element kept with probability 1 − p
//   evaluate  y = x
//
// It is a pure function of (seed, node name, step, the sample's position in the
// batch, the element's logical index c H W + h W + w): see DropoutMask. So the mask depends neither on the
// cut, nor on the micro-batch size, nor on the layout. Backward draws it again, and nothing is stashed.
#pragma once

#include "framework/graph.h"
#include "framework/random.h"

namespace antichain {

struct DropoutOptions {
  double p = 0.5;
};
template <class Visit>
void fields(DropoutOptions& o, Visit&& visit) {
  visit("p", o.p);
}

class Dropout : public Op {
 public:
  Dropout(double p, std::string node_name);  // Error unless 0 ≤ p < 1
  std::string_view type() const override { return "dropout"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const double p;
  const std::string node_name;
};

// A DropoutMask is the mask of one sample at one step; every engine uses this class.
class DropoutMask {
 public:
  // A Draw draws one step's numbers, by sample and element, without the operator. It is constexpr, so that
  // device code may use it, too.
  class Draw {
   public:
    Draw(const Dropout& op, const DropoutKey& key) : Draw(op.node_name, op.p, key) {}
    Draw(std::string_view node_name, double p, const DropoutKey& key)
        : Draw(mix(key.seed, hash_bytes(node_name)), key.step, key.first_sample, uint64_t(p * 0x1p32)) {
      live_ = key.live;
    }

    // Returns the draw with the step in the device's memory, if the key has one. Device code calls it.
    constexpr Draw now() const { return live_ ? Draw(node_, live_->step, first_sample_, threshold_) : *this; }

    // Returns four 32-bit words for the logical elements 4 · quad … 4 · quad + 3 of a sample of the
    // micro-batch.
    constexpr std::array<uint32_t, 4> words(int64_t sample, int64_t quad) const {
      return Philox(key_).words(uint64_t(quad), position(sample));
    }
    constexpr bool keeps(uint32_t word) const { return word >= threshold_; }
    constexpr uint32_t threshold() const { return uint32_t(threshold_); }
    constexpr uint64_t key() const { return key_; }  // of Philox
    constexpr uint64_t position(int64_t sample) const { return first_sample_ + uint64_t(sample); }
    constexpr bool kept(int64_t sample, int64_t element) const {
      return keeps(words(sample, element / 4)[size_t(element % 4)]);
    }

   private:
    constexpr Draw(uint64_t node, uint64_t step, uint64_t first_sample, uint64_t threshold)
        : node_(node), key_(mix(node, step)), first_sample_(first_sample), threshold_(threshold) {}

    uint64_t node_;  // seed and operator
    uint64_t key_;   // and step
    uint64_t first_sample_;
    uint64_t threshold_;  // of 2^32: words below it are dropped
    const StepNumbers* live_ = nullptr;
  };

  // `sample` is the position within the micro-batch.
  DropoutMask(const Dropout& op, const DropoutKey& key, int64_t sample) : draw_(op, key), sample_(sample) {}

  // Returns whether each of the logical elements 4 · quad … 4 · quad + 3 of the sample is kept.
  std::array<bool, 4> kept(int64_t quad) const {
    const auto w = draw_.words(sample_, quad);
    return {draw_.keeps(w[0]), draw_.keeps(w[1]), draw_.keeps(w[2]), draw_.keeps(w[3])};
  }

 private:
  Draw draw_;
  int64_t sample_;
};

NodeId dropout(Graph&, std::string name, NodeId x, double p = 0.5);

}  // namespace antichain
