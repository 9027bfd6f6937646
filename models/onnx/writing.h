// A Writing has the ONNX graph that is being made from a network, and the node of ours whose operators are
// being added. The table of operators is in write_operators.cpp.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "framework/files/weights.h"
#include "framework/graph.h"
#include "models/onnx/messages.h"

namespace antichain::onnx {

class Writing {
 public:
  // Both must outlive it.
  Writing(const Graph& from, const Weights& weights) : graph(from), weights_(weights) {}

  // These say what the node of ours is and has.
  void begin(NodeId id) { id_ = id, helpers_ = 0; }
  const antichain::Node& node() const { return graph[id_]; }
  const Shape& shape(size_t input = 0) const { return graph.shape(node().inputs[input]); }
  std::string input(size_t i = 0) const { return output_of(node().inputs[i]); }
  // Returns what ONNX calls the output of a node. A parameter may have the node's own name.
  std::string output_of(NodeId) const;

  // Adds an operator whose output is the node's.
  Node& last(std::string op, std::vector<std::string> inputs);
  // Adds an operator in front of that one, whose output is done(it).
  Node& helper(std::string op, std::vector<std::string> inputs);
  std::string done(const Node& helper) const { return helper.outputs[0]; }
  // Makes the node's input stand for its output.
  void leave_out() { same_[id_] = input(); }

  // Returns the name of a parameter or buffer, which becomes an initializer of this shape, if one is given.
  std::string part(const std::string& name, std::vector<int64_t> dims = {});
  // Return the name of a constant that is added.
  std::string number(double);  // in float32
  std::string numbers(const std::vector<float>&, std::vector<int64_t> dims);
  std::string integers(const std::vector<int64_t>&);

  // Throws Error: "ONNX has no WHAT".
  [[noreturn]] void refuse(const std::string& what) const;

  const Graph& graph;
  FileGraph into;

 private:
  Node& add(std::string op, std::vector<std::string> inputs, std::string output, std::string name);
  std::string constant(int64_t type, const void* data, size_t bytes, std::vector<int64_t> dims);

  const Weights& weights_;
  std::map<NodeId, std::string> same_;
  std::deque<std::string> owned_;  // bytes of constants
  NodeId id_ = 0;
  int helpers_ = 0;
};

// Adds the operators of the node that was begun. Throws Error where ONNX has none for it.
void write_node(Writing&);

}  // namespace antichain::onnx
