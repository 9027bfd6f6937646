#include "framework/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {

TensorSpec Node::output() const {
  TensorSpec spec = signature.y;
  spec.layout = lowering.y;
  if (spec.dtype == DType::f32) spec.dtype = storage(lowering.precision);
  return spec;
}

TensorSpec Node::param(size_t i) const {
  const ParamSpec& param = signature.params[i];
  return {param.shape, param.dtype, i < lowering.params.size() ? lowering.params[i] : Layout::plain};
}

std::string full_name(const Node& node, const ParamSpec& param) {
  return param.name.empty() ? node.name : node.name + "." + param.name;
}

bool trains(const Node& node) { return std::ranges::any_of(node.signature.params, &ParamSpec::trained); }

int64_t param_bytes(const Node& node, bool trained) {
  int64_t bytes = 0;
  for (size_t i = 0; i < node.signature.params.size(); ++i)
    if (node.signature.params[i].trained == trained) bytes += node.param(i).bytes();
  return bytes;
}

bool Node::keeps(NodeId input) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] == input && lowering.keeps(i)) return true;
  return false;
}

NodeId Graph::add(std::string name, std::shared_ptr<const Op> op, std::vector<NodeId> inputs) {
  return add(std::move(name), std::move(op), std::move(inputs), Lowering{});
}

NodeId Graph::add(std::string name, std::shared_ptr<const Op> op, std::vector<NodeId> inputs,
                  Lowering lowering, std::vector<std::string> absorbed) {
  if (find(name) >= 0)
    throw Error(fmt::format("model '{}' has two nodes named '{}'", model_, name), "rename one");
  std::vector<Shape> shapes;
  for (NodeId input : inputs) {
    ANTICHAIN_CHECK(input >= 0 && input < size(),
                    fmt::format("node '{}' uses a node that is not there", name));
    shapes.push_back(shape(input));
  }
  Node node{std::move(name), std::move(op), std::move(inputs), {}, std::move(lowering), std::move(absorbed)};
  try {
    node.signature = node.op->infer(shapes);
  } catch (const Error& error) {
    throw Error(fmt::format("model '{}', node '{}': {}", model_, node.name, error.what()), "", error.code());
  }
  if (state_ && node.name == state_->keeper)
    node.signature.buffers.insert(node.signature.buffers.end(), state_->kept.begin(), state_->kept.end());
  for (ParamSpec& param : node.signature.params)
    param.trained = !state_ || !state_->frozen.contains(full_name(node, param));
  const NodeId id = size();
  bool gradient = trains(node);
  for (NodeId input : node.inputs) {
    gradient = gradient || needs_gradient_[input];
    if (consumers_[input].empty() || consumers_[input].back() != id) consumers_[input].push_back(id);
  }
  needs_gradient_.push_back(gradient && node.role() == Role::compute);
  consumers_.emplace_back();
  ids_.try_emplace(node.name, id);
  for (const std::string& name : node.absorbed) ids_.try_emplace(name, id);
  nodes_.push_back(std::move(node));
  return id;
}

std::string Graph::file_name(const Node& node, const ParamSpec& param) const {
  std::string full = full_name(node, param);
  if (!state_) return full;
  const auto found = state_->names.find(full);
  return found == state_->names.end() ? full : found->second;
}

int Graph::microbatch() const {
  for (const Node& node : nodes_)
    if (node.role() == Role::input) return int(node.signature.y.shape[0]);
  throw Error(fmt::format("model '{}' has no input node", model_), "add one with input()");
}

NodeId Graph::find(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? -1 : found->second;
}

std::string Graph::hash() const {
  std::string text = model_;
  if (precision_ != Precision::float32) text += fmt::format(" in {}", name_of(precision_));
  for (const Node& node : nodes_) {
    text += fmt::format("\n{} {} [{}] {} {}", node.name, node.op->str(), fmt::join(node.inputs, ","),
                        node.signature.y.shape.str(), name_of(node.lowering.y));
    for (Layout layout : node.lowering.params) text += fmt::format(" {}", name_of(layout));
    for (const std::string& name : node.absorbed) text += fmt::format(" + {}", name);
    for (const ParamSpec& param : node.signature.params)
      if (!param.trained) text += fmt::format(" frozen {}", full_name(node, param));
  }
  return fmt::format("{:016x}", hash_bytes(text));
}

}  // namespace antichain
