// This file makes a profile's static half: everything about a lowered graph that needs no measurement.
#include "partition/profile/profile.h"

#include <algorithm>
#include <functional>
#include <map>

#include "framework/update_scratch.h"

namespace antichain {
namespace {

int64_t sum_of_bytes(const std::vector<TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += spec.bytes();
  return bytes;
}

int64_t stash_bytes(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  return (graph.has_backward(id) ? sum_of_bytes(node.lowering.stash) : 0) +
         sum_of_bytes(node.signature.statistics);
}

bool keeps_output(const Graph& graph, NodeId id) {
  if (graph.has_backward(id) && graph[id].lowering.keeps_y) return true;
  return std::ranges::any_of(graph.consumers(id), [&](NodeId consumer) {
    return graph.has_backward(consumer) && graph[consumer].keeps(id);
  });
}

ProfileNode profile_node(const Graph& graph, NodeId id, const Optimiser& optimiser) {
  const Node& node = graph[id];
  ProfileNode priced;
  priced.name = node.name;
  priced.absorbed = node.absorbed;
  priced.op = std::string(node.op->type());
  priced.role = node.role();
  priced.inputs = node.inputs;
  priced.needs_gradient = graph.needs_gradient(id);
  priced.cost.output_bytes = node.output().bytes();
  priced.cost.param_bytes = param_bytes(node);
  priced.cost.optimiser_bytes = slot_bytes(optimiser, node);
  priced.cost.frozen_bytes = param_bytes(node, false);
  priced.cost.prepared_bytes = sum_of_bytes(node.lowering.prepared);
  priced.cost.stash_bytes = stash_bytes(graph, id);
  priced.cost.scratch_bytes = std::max(node.lowering.workspace_bytes, update_scratch_bytes(optimiser, node));
  priced.cost.keeps_output = keeps_output(graph, id);
  priced.cost.flops = node.signature.forward_flops;
  return priced;
}

}  // namespace

bool ProfileNode::called(std::string_view wanted) const {
  return name == wanted || std::ranges::count(absorbed, wanted) > 0;
}

std::vector<std::vector<int>> Profile::consumers() const {
  std::vector<std::vector<int>> consumers(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n)
    for (int input : nodes[n].inputs) {
      std::vector<int>& theirs = consumers[input];
      if (theirs.empty() || theirs.back() != int(n)) theirs.push_back(int(n));
    }
  return consumers;
}

std::vector<SentTensor> Profile::sent_tensors() const {
  if (sent) return *sent;
  std::vector<SentTensor> tensors;
  const std::vector<std::vector<int>> all = consumers();
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].role == Role::input || all[n].empty()) continue;
    SentTensor& tensor = tensors.emplace_back(SentTensor{{int(n)}, nodes[n].cost.output_bytes});
    tensor.nodes.insert(tensor.nodes.end(), all[n].begin(), all[n].end());
    tensors.push_back(tensors.back());  // the gradient
  }
  return tensors;
}

std::vector<SharedWeight> Profile::shared_weights() const {
  std::vector<SharedWeight> weights;
  std::map<std::string, size_t> known;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const SharedUse& use : nodes[n].shared) {
      const auto [at, added] = known.try_emplace(use.weight, weights.size());
      if (added) weights.push_back({.bytes = use.bytes, .uses = {}});
      weights[at->second].uses.push_back({int(n), use.param});
    }
  for (SharedWeight& weight : weights) std::ranges::sort(weight.uses, std::greater());
  return weights;
}

Profile unpriced(const Graph& lowered, const std::string& device, const Optimiser& optimiser) {
  Profile profile;
  profile.model = lowered.model();
  profile.graph_hash = lowered.hash();
  profile.device = device;
  profile.precision = lowered.precision();
  profile.microbatch = lowered.microbatch();
  for (NodeId id = 0; id < lowered.size(); ++id)
    profile.nodes.push_back(profile_node(lowered, id, optimiser));
  for (const auto& [name, uses] : lowered.shared())
    for (const ParamUse& use : uses) {
      const Node& node = lowered[use.node];
      if (!node.signature.params[size_t(use.param)].trained) continue;
      const int64_t bytes = node.param(size_t(use.param)).bytes();
      const auto slots = int64_t(optimiser.slots(node.signature.params[size_t(use.param)]).size());
      profile.nodes[size_t(use.node)].shared.push_back(
          {name, uses.front().node, use.param, bytes, slots * bytes});
    }
  return profile;
}

}  // namespace antichain
