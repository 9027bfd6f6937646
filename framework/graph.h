// A model is a function that builds a Graph. The graph is a value: its nodes stand in an order in which each
// uses only earlier nodes, so it is sorted and acyclic by construction.
//
// A node has one output, named by the node. Shapes are for one micro-batch. Inputs (images, labels) are nodes
// of role `input`: no stage owns them, and every stage that uses one loads it. Losses are nodes of role
// `loss`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op.h"

namespace antichain {

class Backend;
using NodeId = int;

struct Node {
  std::string name;
  std::shared_ptr<const Op> op;
  std::vector<NodeId> inputs;
  Signature signature;
  Lowering lowering;  // filled by lower(); before that all layouts are plain
  // The names of the nodes fused into this one, in order; it has the value of the last.
  std::vector<std::string> absorbed = {};

  TensorSpec output() const;         // signature.y in the lowering's layout and precision
  TensorSpec param(size_t i) const;  // signature.params[i] in the lowering's layout
  Role role() const { return op->role(); }
  bool keeps(NodeId input) const;  // whether backward re-reads that input
};

// Returns the full name of a parameter or buffer of the node: "layer1.0.conv1.weight". One without a name has
// the node's: "features.1.0.layer_scale". A parameter that an earlier node has, too, has its name there.
std::string full_name(const Node&, const ParamSpec&);
// A ParamUse is a node's use of a parameter, by its index in the node's signature.
struct ParamUse {
  NodeId node = 0;
  int param = 0;
  auto operator<=>(const ParamUse&) const = default;
};
// A StateDict says what holds of a network's state and does not follow from its nodes: what is frozen, what
// is shared, and what files of weights have otherwise, which are those of a module from which a graph.json
// was written. The network's state holds what is kept, as buffers of the node `keeper`, and a shared
// parameter once.
struct StateDict {
  using Names = std::map<std::string, std::string, std::less<>>;
  Names also;    // full names of parameters, by further names that they have in files
  Names names;   // by full names, where those of files differ
  Names shared;  // by the name that a node gives its parameter: the full name of an earlier one
  std::vector<ParamSpec> kept;  // with which nothing computes
  std::string keeper;
  std::set<std::string, std::less<>> frozen;  // full names of the parameters that are not trained
};
bool trains(const Node&);  // whether any of its parameters is trained
// Returns the bytes of one copy of the weights that are trained, or of the frozen ones. The layout's padding
// takes memory, too.
int64_t param_bytes(const Node&, bool trained = true);

class Graph {
 public:
  explicit Graph(std::string model = {}, Precision precision = Precision::float32,
                 std::shared_ptr<const StateDict> state = nullptr)
      : model_(std::move(model)), precision_(precision), state_(std::move(state)) {}

  // Appends a node and infers its signature. Throws Error when the name is taken, an input is not an earlier
  // node, or the shapes do not fit.
  NodeId add(std::string name, std::shared_ptr<const Op> op, std::vector<NodeId> inputs);
  NodeId add(std::string name, std::shared_ptr<const Op> op, std::vector<NodeId> inputs, Lowering lowering,
             std::vector<std::string> absorbed = {});

  // Makes one parameter of two: the node's is from now on the one that an earlier node has, value, update and
  // all, and its gradient is the sum over its uses. `use` is the name that its node gives it ("head.weight"),
  // `of` the full name of the other ("embed.weight"). Throws Error when there is no such parameter, `of` is
  // none of an earlier node, or shape or layout differ.
  void share(const std::string& use, const std::string& of);
  // Shares all parameters of an earlier node of the same type and options.
  void share(NodeId use, NodeId of);
  // Returns the uses of each parameter that has several, ascending, by its full name.
  const std::map<std::string, std::vector<ParamUse>>& shared() const { return shared_; }

  const std::string& model() const { return model_; }
  Precision precision() const { return precision_; }                        // that it was lowered to
  const std::shared_ptr<const StateDict>& state() const { return state_; }  // nullptr: all are the nodes'
  // Returns the name that files of weights have for a parameter or buffer of a node.
  std::string file_name(const Node&, const ParamSpec&) const;
  int size() const { return int(nodes_.size()); }
  const Node& operator[](NodeId id) const { return nodes_[id]; }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }
  const std::vector<NodeId>& consumers(NodeId id) const { return consumers_[id]; }  // ascending, no repeats
  const Shape& shape(NodeId id) const { return nodes_[id].signature.y.shape; }
  int microbatch() const;                    // samples per micro-batch: the first dimension of the inputs
  NodeId find(std::string_view name) const;  // by its own or an absorbed name; −1 when there is none

  // Returns whether the gradient of the node's output is ever needed: the gradient reaches a parameter that
  // is trained, and the node is no input.
  bool needs_gradient(NodeId id) const { return needs_gradient_[id]; }
  // Returns whether a step calls the node's backward.
  bool has_backward(NodeId id) const { return needs_gradient_[id] || nodes_[id].role() == Role::loss; }

  // Returns a hash over names, operators with their options, edges, shapes, layouts, precision and frozen
  // parameters. Profiles and plans are for the graph with this hash.
  std::string hash() const;

 private:
  ParamUse parameter(const std::string& own_name) const;
  void find_heads(const Node& loss);
  void share(Node&, int param, const std::string& of);

  std::string model_;
  Precision precision_;
  std::vector<Node> nodes_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> needs_gradient_;
  std::map<std::string, NodeId, std::less<>> ids_;  // by own and absorbed names
  std::shared_ptr<const StateDict> state_;
  std::map<std::string, std::vector<ParamUse>> shared_;
};

// Returns the graph with operators fused where the backend can (framework/fuse.h), the backend's layouts
// chosen, and "reorder" nodes where two neighbours' layouts differ. Throws Error when the machine lacks the
// instructions for the precision.
Graph lower(const Graph&, const Backend&, Precision = Precision::float32);

}  // namespace antichain
