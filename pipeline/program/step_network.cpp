#include "pipeline/program/step_network.h"

#include "framework/by_element.h"
#include "framework/in_place.h"
#include "pipeline/program/parts.h"

namespace antichain {

bool StepNode::rereads(int input) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] == input && rereads_input[i]) return true;
  return false;
}

StepNetwork step_network(const Graph& graph, const Optimiser& optimiser) {
  StepNetwork network;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    StepNode& of = network.emplace_back();
    of = {.name = node.name,
          .inputs = node.inputs,
          .role = node.role(),
          .needs_gradient = graph.needs_gradient(id),
          .has_backward = graph.has_backward(id),
          .learns = trains(node),
          .output = node.output(),
          .stash = node.lowering.stash,
          .statistics = node.signature.statistics,
          .rereads_output = node.lowering.keeps_y,
          .adds_dx = node.lowering.adds_dx,
          .adds_dy = node.lowering.adds_dy,
          .in_place = works_in_place(node.op->type())};
    for (size_t i = 0; i < node.inputs.size(); ++i) of.rereads_input.push_back(node.lowering.keeps(i));
    for (size_t i = 0; i < node.signature.params.size(); ++i)
      if (const ParamSpec& param = node.signature.params[i]; param.trained)
        of.weights.push_back({.room_bytes = part_room(node.param(i).bytes()),
                              .param = int(i),
                              .shared = graph.shared().contains(full_name(node, param)),
                              .whole = !updates_by_element(optimiser, param)});
  }
  for (const auto& [name, uses] : graph.shared())
    for (const auto& [node, param] : uses)
      network[size_t(node)].shared[param] = graph[node].param(size_t(param));
  return network;
}

StepNetwork step_network(const Profile& profile) {
  const auto flat = [](int64_t bytes) { return TensorSpec{{bytes}, DType::u8}; };
  const std::vector<std::vector<int>> consumers = profile.consumers();
  StepNetwork network;
  for (const ProfileNode& node : profile.nodes) {
    const bool read = !consumers[network.size()].empty();  // else a loss, or the end of a network without one
    StepNode& of = network.emplace_back();
    of = {.name = node.name,
          .inputs = node.inputs,
          .role = node.role,
          .needs_gradient = node.needs_gradient && read,
          .has_backward = node.needs_gradient || node.role == Role::loss,
          .learns = node.cost.param_bytes > 0,
          .output = flat(node.cost.output_bytes),
          .rereads_output = node.cost.keeps_output,
          .adds_dx = true,
          .in_place = works_in_place(node.op)};
    if (node.cost.stash_bytes > 0) of.stash.push_back(flat(node.cost.stash_bytes));
    int64_t own_bytes = node.cost.param_bytes;
    for (const SharedUse& use : node.shared) {
      of.shared[use.param] = flat(use.bytes);
      of.weights.push_back({.room_bytes = part_room(use.bytes), .param = use.param, .shared = true});
      own_bytes -= use.bytes;
    }
    of.weights.push_back({.room_bytes = part_room(own_bytes)});
    for (const int input : node.inputs)
      of.rereads_input.push_back(profile.nodes[size_t(input)].cost.keeps_output ||
                                 profile.nodes[size_t(input)].role == Role::input);
  }
  return network;
}

}  // namespace antichain
