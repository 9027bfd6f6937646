#include "partition/plan/objective.h"

#include "partition/plan/name_table.h"

namespace antichain {
namespace {

constexpr NameTable<Objective, 6> objective_table = {
    .kind = "objective",
    .rows = {{
        {Objective::compute, "compute"},
        {Objective::compute_or_transfer, "compute-or-transfer"},
        {Objective::makespan, "makespan"},
        {Objective::period, "period"},
        {Objective::load, "load"},
        {Objective::overlapped_load, "overlapped-load"},
    }},
};

}  // namespace

std::string_view name_of(Objective objective) { return objective_table.name_of(objective); }

Objective objective(std::string_view name) { return objective_table.value(name); }

std::vector<std::string> objective_names() { return objective_table.names(); }

}  // namespace antichain
