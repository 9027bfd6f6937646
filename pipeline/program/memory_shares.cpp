// The memory of a rank is predicted from its program's buffers and the profile's bytes of weights.
#include <algorithm>
#include <map>

#include "partition/plan/stage_cost.h"
#include "pipeline/program/program.h"

namespace antichain {
namespace {

int64_t held(const Profile& profile, const std::vector<int>& nodes, bool trains) {
  int64_t bytes = 0;
  for (const int n : nodes) {
    const NodeCost& cost = profile.nodes[size_t(n)].cost;
    bytes += trains ? held_bytes(cost) : cost.param_bytes + cost.frozen_bytes + cost.prepared_bytes;
  }
  return bytes - held_once_bytes(profile, nodes, trains);
}

}  // namespace

std::vector<int64_t> peak_memory_bytes(const Schedule& schedule, const Plan& plan, const Profile& profile) {
  validate(schedule, profile, plan);
  const bool trains = learns(schedule);
  const Program program = compile(schedule, profile, plan);
  std::vector<int64_t> bytes;
  for (const RankProgram& rank : program.ranks) {
    int64_t& sum = bytes.emplace_back(0);
    std::map<int, std::vector<Lifetime>> passing;  // by stage
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.passing)
        passing[buffer.stage].push_back(buffer.lifetime);
      else
        sum += buffer.spec.bytes() * buffer.copies;
    }
    int64_t most = 0;
    for (const auto& [stage, lifetimes] : passing) most = std::max(most, most_alive_bytes(lifetimes));
    sum += most;
    sum += held(profile, nodes_of_rank(plan, int(bytes.size()) - 1), trains);
  }
  return bytes;
}

}  // namespace antichain
