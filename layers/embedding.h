// An Embedding has a row of numbers for each token, which it looks up: Bengio, Ducharme, Vincent & Jauvin,
// "A Neural Probabilistic Language Model", JMLR 2003.
//
//   ids  N x …, int32, of an input: 0 … rows − 1, or −1: padding, which gives zeros
//   weight  rows x width      y  N x … x width
//
//   y[i] = weight[ids[i]]      dweight[r] = Σ dy[i] over the i with ids[i] = r, added up in their order
//
// Another number is an Error on the CPU, which names sample, position and number. A GPU gives NaN
// for it, which the step's check for finite numbers finds.
#pragma once

#include <optional>

#include "framework/graph.h"

namespace antichain {

struct EmbeddingOptions {
  int64_t rows = 0, width = 0;
  std::optional<int64_t> padding = {};  // the row that has no gradient (padding_idx)
  Initialiser weight_init = Initialiser::normal(1);
};
template <class Visit>
void fields(EmbeddingOptions& o, Visit&& visit) {
  visit("rows", o.rows);
  visit("width", o.width);
  visit("padding", o.padding);
  visit("weight_init", o.weight_init);
}

class Embedding : public Op {
 public:
  explicit Embedding(EmbeddingOptions options);  // Error when an option makes no sense
  std::string_view type() const override { return "embedding"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;
  Wants wants(size_t /*input*/, size_t /*inputs*/) const override { return Wants::integers; }

  const EmbeddingOptions options;
};

// EmbeddingSizes say what kernels look up: numbers of rows at `positions` of each of `samples`.
struct EmbeddingSizes {
  int64_t samples, positions, rows, width;
  int64_t padding;  // −1: none

  // Throws Error where the numbers are no integers.
  EmbeddingSizes(const Embedding&, const TensorSpec& ids);
  int64_t ids() const { return samples * positions; }
};

NodeId embedding(Graph&, std::string name, NodeId ids, EmbeddingOptions);

}  // namespace antichain
