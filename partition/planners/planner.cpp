// This file maps each method to its planner, and has the exact one, which is partition/search alone.
#include "partition/planners/planner.h"

#include <array>
#include <utility>

#include "framework/error.h"
#include "partition/search/antichain_search.h"

namespace antichain {
namespace {

constexpr std::array<std::pair<Method, Planner>, 8> planners = {{
    {Method::antichain, plan_antichain},
    {Method::cudasize, plan_cudasize},
    {Method::hashrate, plan_hashrate},
    {Method::handsplit, plan_handsplit},
    {Method::uniform, plan_uniform},
    {Method::block, plan_block},
    {Method::pipedream, plan_pipedream},
    {Method::data_parallel, plan_data_parallel},
}};

}  // namespace

Plan plan_antichain(const Profile& profile, const PlanOptions& options) {
  AntichainSearch search(profile, options);
  return search.plan_of(search.best());
}

Planner planner(Method method) {
  for (const auto& [its_method, plan] : planners)
    if (its_method == method) return plan;
  ANTICHAIN_CHECK(false, "every method has a planner");
  return nullptr;
}

}  // namespace antichain
