// This is the exact planner. partition/search/antichain_search.h explains it.
#include "partition/search/antichain_search.h"

#include <chrono>

namespace antichain {

Plan plan_antichain(const Profile& profile, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  AntichainSearch search(profile, options);
  return search.plan(search.best(), start);
}

}  // namespace antichain
