// These functions make plans and numbers of micro-batches that a policy takes.
#pragma once

#include "pipeline/schedule/policy.h"
#include "tests/pipeline/planning/networks.h"

namespace antichain::test {

inline int chunks_of(const Policy& policy) { return default_chunks(policy.placement); }

// Returns the plan with each stage on the rank that the policy's placement gives it. It has as many stages as
// there are ranks times chunks.
inline Plan on_ranks_of(const Policy& policy, Plan plan) {
  const int stages = int(plan.stages.size()), ranks = stages / chunks_of(policy);
  for (int s = 0; s < stages && chunks_of(policy) > 1; ++s)
    plan.stages[size_t(s)].ranks = {position_of_stage(policy.placement, s, ranks)};
  return plan;
}

inline std::vector<Policy> asynchronous_policies() {
  std::vector<Policy> found;
  for (const Policy& policy : policies())
    if (policy.asynchronous()) found.push_back(policy);
  return found;
}

// Returns the least number of micro-batches that the policy takes, from this one on.
inline int fitting(const Policy& policy, int microbatches, int ranks) {
  return policy.next_microbatches ? policy.next_microbatches(microbatches, ranks) : microbatches;
}

// Returns a random cut into as many stages as so many ranks have under the policy, each on its rank.
inline auto for_policy(const Policy& policy, unsigned seed) {
  return [&policy, seed](const Profile& profile, int ranks) {
    std::mt19937 random(seed);
    return on_ranks_of(policy, random_plan(random, profile, ranks * chunks_of(policy)));
  };
}

// Returns a chain with one node for each stage of so many ranks.
struct ChainOfRanks {
  ChainOfRanks(const Policy& policy, int ranks,
               NodeCost cost = {.forward_s = 1, .backward_input_s = 1, .backward_weight_s = 1})
      : profile(chain(ranks * chunks_of(policy), cost)), plan(on_ranks_of(policy, one_node_each(profile))) {}
  Profile profile;
  Plan plan;
};

}  // namespace antichain::test
