#include "pipeline/program/memory_shares.h"

#include <algorithm>
#include <map>
#include <set>

#include "partition/plan/stage_cost.h"
#include "pipeline/program/weight_versions.h"

namespace antichain {
namespace {

std::set<BufferId> messages_of(const RankProgram& rank) {
  std::set<BufferId> found;
  for (const auto& [stage, tensors] : rank.stages)
    for (const auto* of : {&tensors.sent, &tensors.received})
      for (const auto& [message, buffer] : *of) found.insert(buffer);
  return found;
}

MemoryShares held_shares(const Profile& profile, const std::vector<int>& nodes, bool trains) {
  MemoryShares shares{.weights = -held_once_bytes(profile, nodes, false)};
  if (trains) shares.optimiser = -shares.weights - held_once_bytes(profile, nodes, true);
  for (const int n : nodes) {
    const NodeCost& cost = profile.nodes[size_t(n)].cost;
    shares.weights += cost.param_bytes + cost.frozen_bytes + cost.prepared_bytes;
    shares.scratch = std::max(shares.scratch, cost.scratch_bytes);
    if (!trains) continue;
    shares.gradients += cost.param_bytes;
    shares.optimiser += cost.slot_bytes();
  }
  return shares;
}

// Returns the bytes of slots that only other replicas have, where they share them out.
int64_t slots_elsewhere(const Profile& profile, const Plan& plan, int rank) {
  int64_t bytes = 0;
  for (const int s : stages_of_rank(plan, rank)) {
    const PlanStage& stage = plan.stages[size_t(s)];
    const int64_t slots = sum_of(profile, stage.nodes).slot_bytes;
    bytes += slots - of_one_replica(slots, int(stage.ranks.size()));
  }
  return bytes;
}

int64_t most_passing_bytes(const RankProgram& rank) {
  std::map<int, std::vector<Lifetime>> passing;  // by stage
  for (const Buffer& buffer : rank.buffers)
    if (buffer.passing) passing[buffer.stage].push_back(buffer.lifetime);
  int64_t most = 0;
  for (const auto& [stage, lifetimes] : passing) most = std::max(most, most_alive_bytes(lifetimes));
  return most;
}

}  // namespace

MemoryShares ring_shares(const RankProgram& rank) {
  const std::set<BufferId> messages = messages_of(rank);
  MemoryShares shares;
  for (size_t b = 0; b < rank.buffers.size(); ++b) {
    const Buffer& buffer = rank.buffers[b];
    if (buffer.passing) continue;
    const bool travels = buffer.content == Content::received || buffer.content == Content::weight ||
                         messages.contains(BufferId(b));
    (travels ? shares.messages : shares.kept) += buffer.spec.bytes() * buffer.copies;
  }
  return shares;
}

std::vector<MemoryShares> memory_shares(const Schedule& schedule, const Plan& plan, const Profile& profile) {
  validate(schedule, profile, plan);
  const bool trains = learns(schedule);
  const Program program = compile(schedule, profile, plan);
  std::vector<MemoryShares> all;
  for (const RankProgram& rank : program.ranks) {
    const MemoryShares rings = ring_shares(rank);
    const int own = int(all.size());
    MemoryShares& shares = all.emplace_back(held_shares(profile, nodes_of_rank(plan, own), trains));
    const KeptVersions kept = kept_versions(schedule, plan, own);
    for (const auto& [node, count] : kept.older) {
      const NodeCost& cost = profile.nodes[size_t(node)].cost;
      if (cost.param_bytes > 0)
        shares.versions += kept.sets(count) * (cost.param_bytes + cost.prepared_bytes);
    }
    if (trains && plan.shard_optimiser) shares.optimiser -= slots_elsewhere(profile, plan, own);
    shares.kept = rings.kept, shares.messages = rings.messages;
    shares.working = most_passing_bytes(rank);
  }
  return all;
}

std::vector<int64_t> peak_memory_bytes(const Schedule& schedule, const Plan& plan, const Profile& profile) {
  std::vector<int64_t> bytes;
  const std::vector<MemoryShares> all = memory_shares(schedule, plan, profile);
  for (const MemoryShares& shares : all) bytes.push_back(shares.bytes());
  return bytes;
}

}  // namespace antichain
