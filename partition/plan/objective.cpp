#include "partition/plan/objective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "framework/error.h"

namespace antichain {
namespace {

constexpr std::array<std::pair<Objective, std::string_view>, 4> objectives = {{
    {Objective::compute, "compute"},
    {Objective::compute_or_transfer, "compute-or-transfer"},
    {Objective::makespan, "makespan"},
    {Objective::period, "period"},
}};

}  // namespace

std::string_view name_of(Objective objective) {
  for (const auto& [known, name] : objectives)
    if (known == objective) return name;
  ANTICHAIN_CHECK(false, "every objective has a name");
  return "";
}

Objective objective(std::string_view name) {
  for (const auto& [objective, its_name] : objectives)
    if (its_name == name) return objective;
  throw Error(fmt::format("there is no objective called \"{}\"", name),
              fmt::format("choose one of {}", fmt::join(objective_names(), ", ")), ExitCode::usage);
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const auto& [objective, name] : objectives) names.emplace_back(name);
  return names;
}

}  // namespace antichain
