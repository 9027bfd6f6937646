// A RankModel is what a rank owns of the model between steps: the kernels of its nodes, their weights,
// gradients, optimiser state and buffers. Where the plan gives the rank several stages, it holds the nodes of
// all. What lives within a step is in RankMemory; who does what when is in the Schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/backend.h"
#include "framework/graph.h"
#include "pipeline/program/shards.h"
#include "pipeline/program/weight_versions.h"

namespace antichain {

// The weights of a node as its kernel reads them: parameters, buffers, and what the kernel made of the
// parameters. Parameters go by the index of Signature::params, buffers by that of Signature::buffers, and
// prepared by that of Lowering::prepared.
struct NodeWeights {
  std::vector<Tensor> params, buffers, prepared;
};

// A NodeState is everything of one node that outlives a step. Tensors are in the device's memory and the
// lowering's layouts. Gradients and slots go by the index of Signature::params, and a parameter's slots by
// the optimiser's order. The gradient of a frozen parameter is an empty tensor.
struct NodeState : NodeWeights {  // the newest
  std::unique_ptr<Kernel> kernel;
  std::vector<Tensor> gradients;
  // Where replicas share out the optimiser's state, `shares` say who has which part of each parameter's
  // slots. Then the slots here are of this rank's part, if it has one; nobody's share is everybody's.
  std::vector<std::vector<Tensor>> slots;
  std::vector<std::vector<Share>> shares;
  // Whether a parameter is one that an earlier node of the rank has. Then value and slots are the same
  // tensors, and that node's update is the only one. Gradients are always the node's own.
  std::vector<bool> again;
  // Where training is asynchronous: the weights before the last update, before the one before it, … Where
  // weights are predicted, these are the predictions that were made of them, and `ahead` is that of the
  // newest, made by an update of the others' slots.
  std::vector<NodeWeights> older;
  std::optional<NodeWeights> ahead;
  std::unique_ptr<Update> predict = {};

  // Returns those that an action reads. What no update changes has one version.
  const NodeWeights& weights(const WeightVersion& of) const {
    if (of.behind > 0 && !older.empty()) return older[size_t(of.behind) - 1];
    return of.ahead > 0 && ahead ? *ahead : *this;
  }
};

class RankModel {
 public:
  // `nodes` are ascending. Initial values are drawn by (seed, parameter name), so they are the same on
  // whichever rank they live. Throws Error when the backend has no kernel for an operator, no update for the
  // optimiser, or no memory. The graph and the context must outlive the model. With shards of the optimiser's
  // state, the model has this replica's, and an update leaves the other replicas' parts of the weights and
  // all that is prepared of weights as they are (pipeline/run/shard_exchange.h). It keeps the versions of
  // weights that are asked for.
  RankModel(const Graph& lowered, std::vector<NodeId> nodes, Context&, uint64_t seed,
            std::shared_ptr<const Optimiser> = default_optimiser(), Shards = {}, const KeptVersions& = {});

  // Has other nodes from now on, ascending. Those that it had before keep their state. Weights, slots and
  // buffers of the others are memory whose content the caller sets before it calls prepare(). The model has
  // neither shards nor older versions. Runners of the nodes before can't be used any more.
  void own(std::vector<NodeId> nodes);

  const Graph& graph() const { return graph_; }
  const std::vector<NodeId>& nodes() const { return nodes_; }
  const Optimiser& optimiser() const { return *optimiser_; }
  const Shards& shards() const { return shards_; }
  // Calls f(use, full name, shares) for each parameter that is trained, once where several nodes have it.
  using TrainedVisitor = std::function<void(const ParamUse&, const std::string&, const std::vector<Share>&)>;
  void for_each_trained(const TrainedVisitor& f) const;
  // Returns the part of a parameter's tensor that a share is. A part of a matrix is a matrix of one row.
  static Tensor part(const Tensor&, const ByteRange& share);
  // Returns the part whose slots this rank has: all where everybody has them, and no bytes where it has none.
  ByteRange own_part(const ParamUse&) const;
  bool owns(NodeId id) const { return state_.contains(id); }
  // Returns the rank's first use of a parameter, which may be another node's than the given one; nothing
  // where the rank does not have it.
  std::optional<ParamUse> use_of(const ParamUse& first) const;
  NodeState& operator[](NodeId id) { return state_.at(id); }
  const NodeState& operator[](NodeId id) const { return state_.at(id); }
  Context& context() const { return context_; }
  // The gradients of all parameters that are trained are here, one behind the other: those of NodeState are
  // its parts. The tensor is float32 and flat.
  const Tensor& gradients() const { return gradients_; }

  // Does one pass of the optimiser over the parameters of a node, after which they are prepared anew.
  void update(NodeId id, const Rate&);
  // Does the same pass over the parameters of several nodes at once, by the Update that make_update made for
  // these nodes.
  void update(const std::vector<NodeId>& nodes, const Update&, const Rate&);
  std::unique_ptr<Update> make_update(const std::vector<NodeId>& nodes) const;
  // Has every kernel prepare its parameters. Call it after setting their values in any other way.
  void prepare();
  // Makes the newest weights, or what is predicted of them, the youngest of the older ones, where there are
  // any. Call it before each update.
  void keep_weights();
  // Predicts the weights of these nodes anew, where they are predicted. Call it after each update.
  void predict(const std::vector<NodeId>& nodes, const Rate&);
  // Sets older and predicted weights of these nodes to the newest.
  void forget_older(const std::vector<NodeId>& nodes);

  // Sets older and predicted weights, and the average of the weights that the optimiser may keep
  // (framework/averaged.h), to the weights. Call it after giving a new run its weights, and prepare() after
  // it.
  void begin_run();
  // Exchanges weights and averages, and prepares what they are now, unless other replicas have parts of them
  // (swap_averages in pipeline/run/shard_exchange.h). Returns false where there are no averages.
  bool swap_averages();

  // Calls f(full name, value) for every parameter and buffer, in host memory and plain layout, independent of
  // plan and device. It makes one copy at a time, so that memory does not peak here.
  void for_each_value(const std::function<void(const std::string&, const Tensor&)>& f) const;

 private:
  using FirstValue = std::function<Tensor(const Node&, const ParamSpec&, Layout)>;
  void own(std::vector<NodeId> nodes, const FirstValue&);
  NodeState make(const Node&, const FirstValue&);
  void prepare(NodeState&);
  NodeWeights room_for_weights(NodeId) const;
  void add_versions(NodeId, int older, const PredictionMethod*);
  void copy_weights(const NodeWeights& from, const NodeWeights& to) const;
  void lay_out_gradients();
  std::vector<Trained> trained(NodeId) const;
  void prepare_after_update(NodeId);
  Tensor draw(const Node&, const ParamSpec&, Layout, uint64_t seed) const;

  const Graph& graph_;
  std::vector<NodeId> nodes_;
  Context& context_;
  const std::shared_ptr<const Optimiser> optimiser_;
  const Shards shards_;
  std::map<NodeId, NodeState> state_;
  Tensor gradients_;
  std::map<NodeId, std::vector<NodeId>> sharers_;       // the rank's other nodes with parameters of a node
  std::map<NodeId, std::unique_ptr<Update>> of_nodes_;  // made when they are first asked for
};

}  // namespace antichain
