// Runs a whole graph forward and backward on one micro-batch, on any backend: the simplest form of training,
// to compare engines by.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph.h"
#include "framework/optimiser.h"

namespace antichain {

struct GraphResults {
  std::vector<double> logits;                            // N x classes
  std::vector<double> losses;                            // per sample, not divided
  std::map<std::string, std::vector<double>> gradients;  // by the parameters' names in files, plain layout
};

// Fills a parameter, by its name in files, or an input, on the host in plain layout. Before, whole numbers of
// an input are 0, 1, 2, ….
using Start = std::function<void(const Tensor&, std::string_view name)>;

// `graph` is as the model made it; it is lowered here. The gradients are those of the batch's mean loss.
GraphResults run_graph(const Graph& graph, const Backend&, const Start&, Precision = Precision::float32);

// Runs steps of stochastic gradient descent, all on the same micro-batch.
struct GraphTraining {
  std::vector<double> losses;                          // means: before each step, and after the last
  std::map<std::string, std::vector<double>> weights;  // after it, by full parameter name, plain layout
};
GraphTraining train_graph(const Graph& graph, const Backend&, const Start&,
                          const std::shared_ptr<const Optimiser>&, float rate, int steps);

}  // namespace antichain
