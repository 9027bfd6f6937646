#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "framework/error.h"
#include "layers/operators.h"
#include "models/graph_file.h"

namespace antichain {
namespace {

std::vector<std::string> state_lines(const StateDict* state) {
  using Json = nlohmann::ordered_json;
  std::vector<std::string> lines;
  if (!state) return lines;
  std::set<std::string> kept;
  for (const ParamSpec& spec : state->kept) {
    const std::string& own = *kept.insert(fmt::format("{}.{}", state->keeper, spec.name)).first;
    const bool count = spec.dtype == DType::i32;
    std::vector<int64_t> shape;
    if (!count) shape.assign(spec.shape.begin(), spec.shape.end());
    const Json json = {
        {"name", state->names.at(own)}, {"shape", shape}, {"dtype", count ? "int64" : "float32"}};
    lines.push_back(json.dump());
  }
  for (const auto& [own, name] : state->names)
    if (!kept.contains(own)) lines.push_back(Json{{"name", name}, {"is", own}}.dump());
  for (const auto& [name, of] : state->also) lines.push_back(Json{{"name", name}, {"also", of}}.dump());
  return lines;
}

}  // namespace

std::string to_graph_json(const Graph& graph, const std::string& made_by) {
  using Json = nlohmann::ordered_json;
  std::vector<std::string> inputs, nodes, frozen;
  for (const Node& node : graph) {
    if (node.role() == Role::input) {
      const TensorSpec& spec = node.signature.y;
      const Json json = {{"name", node.name},
                         {"shape", std::vector<int64_t>(spec.shape.begin() + 1, spec.shape.end())},
                         {"dtype", spec.dtype == DType::i32 ? "int32" : "float32"}};
      inputs.push_back(json.dump());
      continue;
    }
    ANTICHAIN_CHECK(node.absorbed.empty() && node.lowering.x.empty(),
                    "a graph is written before it is lowered");
    Json json = {{"name", node.name}, {"op", node.op->type()}, {"inputs", Json::array()}};
    for (NodeId input : node.inputs) json["inputs"].push_back(graph[input].name);
    if (Json options = options_of(*node.op); !options.empty()) json["options"] = std::move(options);
    for (const ParamSpec& param : node.signature.params)
      if (!param.of.empty()) json["shared"][param.name] = param.of;
    nodes.push_back(json.dump());
    for (const ParamSpec& param : node.signature.params)
      if (!param.trained && param.of.empty()) frozen.push_back(Json(graph.file_name(node, param)).dump());
  }
  const std::vector<std::string> state = state_lines(graph.state().get());
  const auto if_any = [](const char* key, const std::vector<std::string>& lines) {
    return lines.empty() ? "" : fmt::format(",\n\"{}\": [\n  {}\n]", key, fmt::join(lines, ",\n  "));
  };
  return fmt::format(
      "{{\"format\": \"{}\", \"version\": {}, \"model\": {}, \"made_by\": {},\n\"inputs\": [\n  {}\n],\n"
      "\"nodes\": [\n  {}\n]{}{}}}\n",
      graph_format, graph_version, Json(graph.model()).dump(), Json(made_by).dump(),
      fmt::join(inputs, ",\n  "), fmt::join(nodes, ",\n  "), if_any("state_dict", state),
      if_any("frozen", frozen));
}

}  // namespace antichain
