#include "models/onnx/writing.h"

#include <fmt/format.h>

#include "framework/error.h"

namespace antichain::onnx {

std::string Writing::output_of(NodeId id) const {
  if (const auto found = same_.find(id); found != same_.end()) return found->second;
  const std::string& name = graph[id].name;
  return weights_.find(name) ? name + "/output" : name;
}

Node& Writing::last(std::string op, std::vector<std::string> inputs) {
  return add(std::move(op), std::move(inputs), output_of(id_), node().name);
}

Node& Writing::helper(std::string op, std::vector<std::string> inputs) {
  const std::string name = fmt::format("{}/{}", node().name, helpers_++);
  return add(std::move(op), std::move(inputs), name, name);
}

std::string Writing::part(const std::string& name, std::vector<int64_t> dims) {
  const std::string full = graph.file_name(node(), {.name = name, .shape = {}, .init = {}});
  const NamedTensor* tensor = weights_.find(full);
  ANTICHAIN_CHECK(tensor && tensor->is_float(), "weights of a network lack one of its parameters");
  into.initializers.push_back({.name = full,
                               .dims = dims.empty() ? tensor->shape : std::move(dims),
                               .raw = {static_cast<const char*>(tensor->data()), size_t(tensor->bytes())}});
  return full;
}

std::string Writing::number(double value) {
  const auto rounded = float(value);
  return constant(type_float, &rounded, sizeof rounded, {});
}

std::string Writing::numbers(const std::vector<float>& values, std::vector<int64_t> dims) {
  return constant(type_float, values.data(), values.size() * sizeof(float), std::move(dims));
}

std::string Writing::integers(const std::vector<int64_t>& values) {
  return constant(type_int64, values.data(), values.size() * sizeof(int64_t), {int64_t(values.size())});
}

void Writing::refuse(const std::string& what) const {
  throw Error(fmt::format("node '{}': ONNX has no {}", node().name, what),
              "save the network as NAME.antichain");
}

Node& Writing::add(std::string op, std::vector<std::string> inputs, std::string output, std::string name) {
  into.nodes.push_back({.name = std::move(name),
                        .op = std::move(op),
                        .inputs = std::move(inputs),
                        .outputs = {std::move(output)}});
  return into.nodes.back();
}

std::string Writing::constant(int64_t type, const void* data, size_t bytes, std::vector<int64_t> dims) {
  const std::string name = fmt::format("{}/{}", node().name, helpers_++);
  const std::string& owned = owned_.emplace_back(static_cast<const char*>(data), bytes);
  into.initializers.push_back({.name = name, .dims = std::move(dims), .type = type, .raw = owned});
  return name;
}

}  // namespace antichain::onnx
