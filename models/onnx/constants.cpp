#include "models/onnx/constants.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "models/onnx/fold.h"

namespace antichain::onnx {

Constants::Constants(const Model& model, std::string origin, size_t bytes)
    : origin_(std::move(origin)), left_(int64_t(bytes) + (int64_t(4) << 20)) {
  for (const Tensor& tensor : model.graph.initializers)
    if (!files_.try_emplace(tensor.name, &tensor).second)
      throw Error(fmt::format("{}: two initializers have the name '{}'", origin_, tensor.name.substr(0, 256)),
                  "the file is damaged");
}

Constant Constants::find(const std::string& name) {
  if (const auto made = made_.find(name); made != made_.end()) return made->second;
  const auto file = files_.find(name);
  if (file == files_.end()) return nullptr;
  return made_[name] = std::make_shared<const NamedTensor>(numbers_of(*file->second, origin_));
}

void Constants::add(const std::string& name, NamedTensor tensor) {
  made_[name] = std::make_shared<const NamedTensor>(std::move(tensor));
}

void Constants::take(int64_t numbers) {
  left_ -= numbers;
  if (left_ < 0)
    throw Error(
        fmt::format("{}: its constants and weights grow to more numbers than the file has bytes", origin_),
        "no exporter writes such a network");
}

std::optional<NamedTensor> Constants::fold(const Node& node) {
  if (!node.domain.empty() || node.outputs.size() != 1) return {};
  if (node.op == "Constant") return value_of_constant(node, origin_);
  const Fold* fold = fold_of(node.op);
  if (!fold || node.inputs.empty()) return {};
  std::vector<Constant> inputs;
  for (const std::string& name : node.inputs) {
    if (!has(name)) return {};
    inputs.push_back(find(name));
  }
  std::optional<NamedTensor> result = (*fold)(node, inputs, origin_);
  if (result) take(result->elements());
  return result;
}

const std::vector<int64_t>* as_integers(const NamedTensor& t) {
  return std::get_if<std::vector<int64_t>>(&t.values);
}

std::vector<int64_t> integers_of(const NamedTensor& t, const std::string& origin) {
  const std::vector<int64_t>* values = as_integers(t);
  if (!values || values->size() > most_integers)
    throw Error(fmt::format("{}: the tensor '{}' has {} where a few integers are expected", origin, t.name,
                            t.shape_text()));
  return *values;
}

std::optional<double> number_of(const NamedTensor& t) {
  if (t.elements() != 1) return {};
  return std::visit([](const auto& values) { return double(values[0]); }, t.values);
}

bool is_number(const Constant& c, double value) { return c && number_of(*c) == value; }

int64_t axis_in(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

int64_t place_in(int64_t place, int64_t extent, int64_t least) {
  if (place < 0) place = std::max(place, -extent - 1) + extent;
  return std::clamp(place, least, extent + least);
}

}  // namespace antichain::onnx
