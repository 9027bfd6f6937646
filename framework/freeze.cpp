#include "framework/freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "framework/error.h"
#include "framework/name_pattern.h"

namespace antichain {

Graph freeze(const Graph& graph, const std::set<std::string>& full_names) {
  auto state = std::make_shared<StateDict>(graph.state() ? *graph.state() : StateDict());
  state->frozen.insert(full_names.begin(), full_names.end());
  Graph frozen(graph.model(), graph.precision(), std::move(state));
  for (const Node& node : graph) frozen.add(node.name, node.op, node.inputs, node.lowering, node.absorbed);
  return frozen;
}

Graph freeze_matching(const Graph& graph, const std::vector<std::string>& patterns) {
  std::set<std::string> full_names;
  NamePatterns matching(patterns);
  for (const Node& node : graph)
    for (const ParamSpec& param : node.signature.params)
      if (matching.find(graph.file_name(node, param)) >= 0) full_names.insert(full_name(node, param));
  matching.check_all_match("--freeze", "parameter", graph);
  return freeze(graph, full_names);
}

void check_trains(const Graph& graph) {
  const auto has = [](const Node& node) { return !node.signature.params.empty(); };
  if (std::ranges::any_of(graph, has) && std::ranges::none_of(graph, trains))
    throw Error(fmt::format("all parameters of '{}' are frozen, so there is nothing to train", graph.model()),
                "leave some of them trained", ExitCode::usage);
}

}  // namespace antichain
