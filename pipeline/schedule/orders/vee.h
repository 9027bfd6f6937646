// This list has what a rank with two stages computes, in the order of calls. Each call takes the next
// micro-batch that the chunk has not done yet. Chunk 0 is the rank's first stage, chunk 1 its second.
#pragma once

#include <array>

#include "pipeline/schedule/compute_order.h"

namespace antichain::orders {

class VeeList {
 public:
  explicit VeeList(const RankSeats& of_rank) : of_rank_(of_rank) {}

  void forward(int chunk) { add(Verb::forward, chunk, forwards_); }
  void backward(int chunk) {
    add(Verb::backward, chunk, backwards_);
    ++weights_[size_t(chunk)];  // a whole backward leaves no weight half to be done
  }
  void input_half(int chunk) { add(Verb::backward_input, chunk, backwards_); }
  void weight_half(int chunk) { add(Verb::backward_weight, chunk, weights_); }

  int forwards(int chunk) const { return forwards_[size_t(chunk)]; }
  int backwards(int chunk) const { return backwards_[size_t(chunk)]; }
  int weights(int chunk) const { return weights_[size_t(chunk)]; }

  ComputeOrder order;

 private:
  using Counts = std::array<int, 2>;

  void add(Verb verb, int chunk, Counts& done) {
    order.actions.push_back({verb, of_rank_[size_t(chunk)].stage, done[size_t(chunk)]++});
  }

  const RankSeats& of_rank_;
  Counts forwards_{}, backwards_{}, weights_{};
};

}  // namespace antichain::orders
