// The planners by name.
#include "partition/planners/planner.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr std::array<std::pair<std::string_view, Planner>, 8> planners = {{
    {"antichain", plan_antichain},
    {"cudasize", plan_cudasize},
    {"hashrate", plan_hashrate},
    {"handsplit", plan_handsplit},
    {"uniform", plan_uniform},
    {"block", plan_block},
    {"pipedream", plan_pipedream},
    {"data-parallel", plan_data_parallel},
}};

}  // namespace

Planner planner(std::string_view method) {
  for (const auto& [name, plan] : planners)
    if (name == method) return plan;
  throw Error(fmt::format("there is no planner called \"{}\"", method),
              fmt::format("choose one of {}", fmt::join(planner_names(), ", ")), ExitCode::usage);
}

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const auto& [name, plan] : planners) names.emplace_back(name);
  return names;
}

}  // namespace antichain
