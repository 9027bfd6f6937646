#include "pipeline/run/gradient_folds.h"

#include <utility>

#include "framework/backend.h"

namespace antichain {

std::vector<Tensor> GradientFolds::begin(NodeId id, int m) {
  std::vector<Tensor> dx;
  for (const Contribution& c : tensors_.contributions.at(id)) {
    if (c.wanted) add_received(c.received_before, m, memory_.at(c.sum, m), c.starts);
    dx.push_back(!c.wanted ? Tensor() : memory_.at(c.written_directly() ? c.sum : c.term, m));
  }
  return dx;
}

std::vector<Into> GradientFolds::into(NodeId id) const {
  std::vector<Into> into;
  for (const Contribution& c : tensors_.contributions.at(id)) into.push_back(c.into());
  return into;
}

void GradientFolds::end(NodeId id, int m, const std::vector<Tensor>& dx) {
  const auto& contributions = tensors_.contributions.at(id);
  for (size_t i = 0; i < dx.size(); ++i)
    if (dx[i] && !contributions[i].written_directly() && !contributions[i].left)
      context_.backend().add(context_, dx[i], memory_.at(contributions[i].sum, m));
}

// Adds received terms to the sum in order; the first is copied where the sum is still empty.
void GradientFolds::add_received(const std::vector<Message>& messages, int m, const Tensor& sum, bool empty) {
  for (const Message& message : messages) {
    const Tensor& term = memory_.received(message, m);
    if (std::exchange(empty, false))
      device_.copy(term, sum);
    else
      context_.backend().add(context_, term, sum);
  }
}

Tensor GradientFolds::output_gradient(NodeId id, int m, bool finish) {
  const OutputGradient& g = tensors_.gradient.at(id);
  if (g.sum == no_buffer) return memory_.received(g.received_after.front(), m);
  const Tensor& sum = memory_.at(g.sum, m);
  if (finish) add_received(g.received_after, m, sum, g.starts);
  return sum;
}

Tensor GradientFolds::output_term(NodeId id, int m) const {
  const BufferId term = tensors_.gradient.at(id).term;
  return term == no_buffer ? Tensor() : memory_.at(term, m);
}

}  // namespace antichain
