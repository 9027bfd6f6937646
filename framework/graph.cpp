#include "framework/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {

TensorSpec Node::output() const {
  TensorSpec spec = signature.y;
  spec.layout = lowering.y;
  // A loss is float32 whatever it is computed of.
  if (spec.dtype == DType::f32 && role() != Role::loss) spec.dtype = storage(lowering.precision);
  return spec;
}

TensorSpec Node::param(size_t i) const {
  const ParamSpec& param = signature.params[i];
  return {param.shape, param.dtype, i < lowering.params.size() ? lowering.params[i] : Layout::plain};
}

namespace {

// Returns the name that the node gives its parameter, whoever else has it.
std::string own_name(const Node& node, const ParamSpec& param) {
  return param.name.empty() ? node.name : node.name + "." + param.name;
}

// Names of nodes and of parameters have dots, so each of them may be where the parameter's begins.
std::optional<ParamUse> find_parameter(const Graph& graph, const std::string& name) {
  for (size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('.', end - 1)) {
    const NodeId id = graph.find(std::string_view(name).substr(0, end));
    if (id < 0) continue;
    const auto& params = graph[id].signature.params;
    for (size_t i = 0; i < params.size(); ++i)
      if (own_name(graph[id], params[i]) == name) return ParamUse{id, int(i)};
  }
  return std::nullopt;
}

// Gives a use of a parameter what the node says of it that it is named by. Throws Error where they differ.
void take_over(Node& node, int param, const Node& first, int its_param, const std::string& model) {
  ParamSpec& use = node.signature.params[size_t(param)];
  const ParamSpec& its = first.signature.params[size_t(its_param)];
  const auto refuse = [&](std::string_view use_has, std::string_view it_has) {
    throw Error(
        fmt::format("model '{}', node '{}': '{}' is {}, but {} as '{}', so they can't be one parameter",
                    model, node.name, own_name(node, use), use_has, it_has, own_name(first, its)),
        "give each a parameter of its own");
  };
  if (use.shape != its.shape) refuse(use.shape.str(), its.shape.str());
  const Layout layout = node.param(size_t(param)).layout, its_layout = first.param(size_t(its_param)).layout;
  if (layout != its_layout) refuse(name_of(layout), name_of(its_layout));
  use.init = its.init;
  use.hidden_matrix = its.hidden_matrix;
}

}  // namespace

std::string full_name(const Node& node, const ParamSpec& param) {
  return param.of.empty() ? own_name(node, param) : param.of;
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
  const NodeId id = size();
  for (size_t i = 0; state_ && i < node.signature.params.size(); ++i)
    if (const auto found = state_->shared.find(own_name(node, node.signature.params[i]));
        found != state_->shared.end())
      share(node, int(i), found->second);
  for (ParamSpec& param : node.signature.params)
    param.trained = !state_ || !state_->frozen.contains(full_name(node, param));
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
  for (size_t i = 0; !shared_.empty() && i < nodes_.back().signature.params.size(); ++i) {
    const ParamSpec& own = nodes_.back().signature.params[i];
    const auto waiting = shared_.find(own_name(nodes_.back(), own));
    if (!own.of.empty() || waiting == shared_.end()) continue;
    for (const ParamUse& use : waiting->second)
      take_over(nodes_[size_t(use.node)], use.param, nodes_.back(), int(i), model_);
    waiting->second.push_back({id, int(i)});
  }
  if (nodes_.back().role() == Role::loss) find_heads(nodes_.back());
  return id;
}

// A loss is computed from the outputs of the last nodes before it that have parameters.
void Graph::find_heads(const Node& loss) {
  std::vector<NodeId> to_visit = loss.inputs;
  while (!to_visit.empty()) {
    Node& node = nodes_[size_t(to_visit.back())];
    to_visit.pop_back();
    if (node.signature.params.empty())
      to_visit.insert(to_visit.end(), node.inputs.begin(), node.inputs.end());
    for (ParamSpec& param : node.signature.params) {
      param.hidden_matrix = false;
      const auto shared = shared_.find(full_name(node, param));
      if (shared == shared_.end()) continue;
      for (const ParamUse& use : shared->second)
        nodes_[size_t(use.node)].signature.params[size_t(use.param)].hidden_matrix = false;
    }
  }
}

ParamUse Graph::parameter(const std::string& name) const {
  if (const std::optional<ParamUse> found = find_parameter(*this, name)) return *found;
  throw Error(fmt::format("model '{}' has no parameter '{}' to share", model_, name),
              "name one of an earlier node");
}

// The node that has the parameter's name may be a later one in a graph of fused nodes, which stand where
// their last part stood. The node itself is not in the graph yet, or stays there.
void Graph::share(Node& node, int param, const std::string& of) {
  node.signature.params[size_t(param)].of = of;
  auto& uses = shared_[of];
  const std::optional<ParamUse> first = find_parameter(*this, of);
  if (first && uses.empty()) uses.push_back(*first);
  const NodeId known = find(node.name);
  const ParamUse at{known < 0 ? size() : known, param};
  uses.insert(std::ranges::upper_bound(uses, at), at);
  if (first) take_over(node, param, nodes_[size_t(first->node)], first->param, model_);
}

void Graph::share(const std::string& use, const std::string& of) {
  const ParamUse at = parameter(use), first = parameter(of);
  if (first.node >= at.node)
    throw Error(fmt::format("model '{}': '{}' shares '{}', which is no parameter of an earlier node", model_,
                            use, of),
                "name the parameter of the later node first");
  const Node& earlier = nodes_[size_t(first.node)];
  const std::string full = full_name(earlier, earlier.signature.params[size_t(first.param)]);
  auto state = state_ ? std::make_shared<StateDict>(*state_) : std::make_shared<StateDict>();
  if (!state->shared.try_emplace(use, full).second)
    throw Error(fmt::format("model '{}': '{}' is shared twice", model_, use), "share it once");
  take_over(nodes_[size_t(at.node)], at.param, earlier, first.param, model_);
  share(nodes_[size_t(at.node)], at.param, full);
  state_ = std::move(state);
}

void Graph::share(NodeId use, NodeId of) {
  for (const ParamSpec& param : std::vector(nodes_[size_t(use)].signature.params))
    share(own_name(nodes_[size_t(use)], param), own_name(nodes_[size_t(of)], param));
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
    for (const ParamSpec& param : node.signature.params) {
      if (!param.trained) text += fmt::format(" frozen {}", full_name(node, param));
      if (!param.of.empty()) text += fmt::format(" {} is {}", own_name(node, param), param.of);
    }
  }
  return fmt::format("{:016x}", hash_bytes(text));
}

}  // namespace antichain
