// This file has the slots of a rank that has one stage, and the policies under which a stage may have several
// ranks.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "pipeline/schedule/policy.h"

namespace antichain::test {

inline Slots only(const RankSlots& of_rank) {
  EXPECT_EQ(of_rank.size(), 1u);
  return of_rank.begin()->second;
}

inline std::vector<Policy> policies_with_replicas() {
  std::vector<Policy> found;
  for (const Policy& policy : policies())
    if (policy.replicas) found.push_back(policy);
  return found;
}

}  // namespace antichain::test
