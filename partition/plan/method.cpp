#include "partition/plan/method.h"

#include "partition/plan/name_table.h"

namespace antichain {
namespace {

constexpr NameTable<Method, 8> method_table = {
    .kind = "planner",
    .rows = {{
        {Method::antichain, "antichain"},
        {Method::cudasize, "cudasize"},
        {Method::hashrate, "hashrate"},
        {Method::handsplit, "handsplit"},
        {Method::uniform, "uniform"},
        {Method::block, "block"},
        {Method::pipedream, "pipedream"},
        {Method::data_parallel, "data-parallel"},
    }},
};

}  // namespace

std::string_view name_of(Method method) { return method_table.name_of(method); }

std::string_view citation(Method method) {
  switch (method) {
    case Method::antichain:
      return "Narayanan et al., \"PipeDream: Generalized Pipeline Parallelism for DNN Training\", SOSP 2019 "
             "(antichains)";
    case Method::pipedream:
      return "Narayanan et al., \"PipeDream: Generalized Pipeline Parallelism for DNN Training\", SOSP 2019";
    case Method::block:
      return "Grinberg, \"Block partitions of sequences\", Israel Journal of Mathematics, 2015";
    default:
      return "";
  }
}

Method method(std::string_view name) { return method_table.value(name); }

std::vector<std::string> method_names() { return method_table.names(); }

const std::vector<Method>& methods() {
  static const std::vector<Method> all = [] {
    std::vector<Method> methods;
    for (const auto& [method, name] : method_table.rows) methods.push_back(method);
    return methods;
  }();
  return all;
}

}  // namespace antichain
