// These are the methods that make plans. Their names and the works they come from stand here and nowhere
// else; partition/planners/planner.h has a planner for each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace antichain {

enum class Method { antichain, cudasize, hashrate, handsplit, uniform, block, pipedream, data_parallel };

std::string_view name_of(Method);      // "data-parallel"
std::string_view citation(Method);     // the work it comes from; empty where there is none
Method method(std::string_view name);  // Usage Error listing the names
const std::vector<Method>& methods();
std::vector<std::string> method_names();

}  // namespace antichain
