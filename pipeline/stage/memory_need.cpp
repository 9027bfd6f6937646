#include "pipeline/stage/memory_need.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "data/loader.h"
#include "framework/averaged.h"
#include "framework/files/state_dict.h"
#include "framework/update_scratch.h"
#include "partition/plan/stage_cost.h"
#include "pipeline/program/shards.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

// The compiled programs and the runner's objects (0.8 MiB for gpt_nano), and what oneDNN allocates in a call:
// it packs the factors of a product (0.5 MiB for gpt_nano, 0.8 for llama), and the allocator leaves holes.
constexpr int64_t small_objects_bytes = 2 << 20;

int64_t weight_bytes(const Node& node) {
  int64_t bytes = param_bytes(node) + param_bytes(node, false);
  for (const TensorSpec& spec : node.lowering.prepared) bytes += spec.bytes();
  for (const ParamSpec& buffer : node.signature.buffers)
    bytes += TensorSpec{buffer.shape, buffer.dtype}.bytes();
  return bytes;
}

// Returns what one older version of the weights takes.
int64_t version_bytes(const Node& node) {
  return trains(node) || !node.signature.buffers.empty() ? weight_bytes(node) - param_bytes(node, false) : 0;
}

// Returns the bytes of slots that only other replicas have.
int64_t slots_elsewhere(const Graph& graph, const std::vector<NodeId>& nodes, const Optimiser& optimiser,
                        const Shards& shards) {
  int64_t bytes = 0, begin = 0;
  std::set<std::string> known;  // a weight that several nodes have is held once
  for (const NodeId id : nodes)
    for (size_t i = 0; i < graph[id].signature.params.size(); ++i) {
      const ParamSpec& param = graph[id].signature.params[i];
      if (!param.trained) continue;
      const ByteRange gradient{begin, graph[id].param(i).bytes()};
      begin += part_room(gradient.bytes);
      if (!known.insert(full_name(graph[id], param)).second) continue;
      for (const Share& share : shards.of_weight(gradient))
        if (share.owner != shards.own) bytes += int64_t(slots_of(optimiser, param).size()) * share.of.bytes;
    }
  return bytes;
}

// state_hash() copies one value after the other, and once more in plain layout where it has another.
int64_t copy_bytes(const Graph& graph, const std::vector<NodeId>& nodes) {
  int64_t most = 0;
  for (const NodeId id : nodes) {
    const Node& node = graph[id];
    for (size_t i = 0; i < node.signature.params.size(); ++i) {
      const TensorSpec own = node.param(i), plain{own.shape, own.dtype};
      most = std::max(most, own.bytes() + (own.layout == Layout::plain ? 0 : plain.bytes()));
    }
  }
  return most;
}

int64_t largest_param_bytes(const Node& node) {
  int64_t most = 0;
  for (size_t i = 0; i < node.signature.params.size(); ++i) most = std::max(most, node.param(i).bytes());
  return most;
}

MemoryShares shares_of_step(const Graph& graph, const Optimiser& optimiser, const Profile& profile,
                            const Plan& plan, const Schedule& schedule, int rank, Mode mode) {
  const Program program = compile(schedule, profile, plan, step_network(graph, optimiser), mode);
  return RankMemory::needed(program.ranks[size_t(rank)]);
}

bool reads(const Graph& graph, const std::vector<NodeId>& nodes, const std::function<bool(NodeId)>& of) {
  return std::ranges::any_of(nodes, [&](NodeId id) { return std::ranges::any_of(graph[id].inputs, of); });
}

}  // namespace

MemoryNeed step_need(const Graph& graph, const Optimiser& optimiser, const Profile& profile, const Plan& plan,
                     const Schedule& schedule, int rank, Mode mode) {
  MemoryNeed need{.step = shares_of_step(graph, optimiser, profile, plan, schedule, rank, mode)};
  need.code = small_objects_bytes;
  const std::vector<NodeId> nodes = nodes_of_rank(plan, rank);
  need.step.weights = -held_once_bytes(profile, nodes, false);
  need.step.optimiser = -need.step.weights - held_once_bytes(profile, nodes, true);
  if (mode == Mode::train)
    need.step.optimiser -=
        slots_elsewhere(graph, nodes, optimiser, shards_of(graph, optimiser, profile, plan, schedule, rank));
  for (const NodeId id : nodes) {
    need.step.weights += weight_bytes(graph[id]);
    need.step.gradients += param_bytes(graph[id]);
    need.step.optimiser += slot_bytes(optimiser, graph[id]);
    need.step.scratch = std::max({need.step.scratch, graph[id].lowering.workspace_bytes,
                                  mode == Mode::train ? update_scratch_bytes(optimiser, graph[id]) : 0});
  }
  const KeptVersions kept = kept_versions(schedule, plan, rank);
  for (const auto& [id, count] : kept.older)
    need.step.versions += kept.sets(count) * version_bytes(graph[id]);
  return need;
}

MemoryNeed memory_need(const Graph& graph, const Optimiser& optimiser, const Profile& profile,
                       const Plan& plan, const Schedule& training, int rank, int64_t samples,
                       int64_t image_bytes, bool keeps_weights) {
  const std::vector<NodeId> nodes = nodes_of_rank(plan, rank);
  const Schedule evaluation =
      make_schedule(profile, plan, Policy::forward_only, training.microbatches_of_step());
  MemoryNeed need = step_need(graph, optimiser, profile, plan, training, rank);
  int64_t largest = 0, largest_of_all = 0;  // of the values of weights
  for (const NodeId id : nodes) largest = std::max(largest, largest_param_bytes(graph[id]));
  for (const Node& node : graph) largest_of_all = std::max(largest_of_all, largest_param_bytes(node));
  need.evaluation =
      shares_of_step(graph, optimiser, profile, plan, evaluation, rank, Mode::evaluate).activations();
  if (averaged(optimiser)) need.evaluation += largest;  // swap_averages() copies it
  need.copy = copy_bytes(graph, nodes);
  // gather_weights() encodes each value for rank 0, which decodes it and then encodes all of them.
  if (keeps_weights)
    need.copy =
        rank == 0 ? file_bytes(graph) + std::max(file_bytes(graph), 2 * largest_of_all) : need.copy + largest;
  const NodeId images = graph.find(Loader::images_input);
  if (reads(graph, nodes, [&](NodeId n) { return n == images; }))  // by two loaders: training, evaluation
    need.images = 2 * int64_t(LoaderOptions().ahead) * graph.microbatch() * image_bytes;
  if (reads(graph, nodes, [&](NodeId n) { return profile.nodes[size_t(n)].role == Role::input; }))
    need.images += samples * int64_t(sizeof(int64_t));
  return need;
}

}  // namespace antichain
