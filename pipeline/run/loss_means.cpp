#include "pipeline/run/loss_means.h"

namespace antichain {

LossMeans::LossMeans(const Graph& graph, const std::vector<NodeId>& nodes) : graph_(graph) {
  for (const NodeId id : nodes) {
    const auto* mean = dynamic_cast<const LossMean*>(graph[id].op.get());
    if (mean && mean->divisor() == LossDivisor::counts) counting_.push_back(id);
    if (mean && mean->divisor() == LossDivisor::one) sums_.push_back(id);
  }
}

void LossMeans::add(const Counts& part, Counts& all) {
  for (const auto& [loss, count] : part) all[loss].divisor += count.divisor, all[loss].hits += count.hits;
}

LossMeans::Counts LossMeans::counts(BatchSource& source, int microbatches) const {
  Counts all;
  for (const NodeId id : counting_) {
    const Node& node = graph_[id];
    std::vector<Tensor> x(node.inputs.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (graph_[node.inputs[i]].role() == Role::input) x[i] = Tensor::host(graph_[node.inputs[i]].output());
    for (int m = 0; m < microbatches; ++m) {
      for (size_t i = 0; i < x.size(); ++i)
        if (x[i]) source.fill(graph_[node.inputs[i]].name, m, x[i]);
      const LossCount part = dynamic_cast<const LossMean&>(*node.op).count(x);
      all[id].divisor += part.divisor, all[id].hits += part.hits;
    }
  }
  return all;
}

StepMeans LossMeans::means_of_batch(BatchSource& source, int microbatches, int batch) const {
  Counts all = counts(source, microbatches);
  for (auto& [loss, count] : all)
    if (count.divisor == 0) count.divisor = batch;
  return means(all, batch, batch);
}

StepMeans LossMeans::means(const Counts& counts, double samples, int batch) const {
  StepMeans all;
  for (const NodeId id : counting_) {
    all.loss_weights[id] = graph_[id].signature.loss_weight * samples / counts.at(id).divisor;
    const double hits = counts.at(id).hits;
    if (id == graph_.size() - 1) all.hit_weight = hits > 0 ? samples / hits : 1;
  }
  for (const NodeId id : sums_) all.loss_weights[id] = graph_[id].signature.loss_weight * batch;
  return all;
}

}  // namespace antichain
