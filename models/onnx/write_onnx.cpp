// Writes networks as ONNX, of opset 17.
#include <fmt/format.h>

#include "framework/error.h"
#include "models/onnx/onnx_file.h"
#include "models/onnx/writing.h"

namespace antichain {
namespace {

constexpr int64_t written_opset = 17, written_ir_version = 8;
constexpr const char* samples_name = "batch";

onnx::ValueInfo value_info(std::string name, const Shape& shape) {
  onnx::ValueInfo info{.name = std::move(name)};
  info.dims.assign(shape.begin(), shape.end());
  info.dims[0] = -1;
  info.params.assign(info.dims.size(), samples_name);
  return info;
}

// Returns which nodes the logits depend on.
std::vector<bool> needed_for(const Graph& graph, NodeId logits) {
  std::vector<bool> needed(size_t(graph.size()));
  needed[size_t(logits)] = true;
  for (NodeId id = logits; id >= 0; --id)
    if (needed[size_t(id)])
      for (const NodeId input : graph[id].inputs) needed[size_t(input)] = true;
  return needed;
}

}  // namespace

std::string to_onnx(const Graph& graph, const Weights& weights, const std::string& made_by) {
  int64_t bytes = 0;
  for (const NamedTensor& tensor : weights) bytes += tensor.bytes();
  if (bytes >= most_onnx_bytes - (int64_t(64) << 20))
    throw Error(fmt::format("the weights have {} bytes, and an ONNX file holds 2 GiB", bytes),
                "save the network as NAME.antichain");
  onnx::Writing w(graph, weights);
  const NodeId logits = graph[graph.size() - 1].inputs[0];
  const std::vector<bool> needed = needed_for(graph, logits);
  for (NodeId id = 0; id <= logits; ++id) {
    if (!needed[size_t(id)]) continue;
    w.begin(id);
    const Node& node = graph[id];
    if (node.role() == Role::input) {
      w.into.inputs.push_back(value_info(w.output_of(id), graph.shape(id)));
      continue;
    }
    onnx::write_node(w);
  }
  w.into.name = graph.model();
  w.into.outputs.push_back(value_info(w.output_of(logits), graph.shape(logits)));
  onnx::Model model{.ir_version = written_ir_version, .producer = made_by, .opsets = {{"", written_opset}}};
  model.graph = std::move(w.into);
  return onnx::serialise(model);
}

}  // namespace antichain
