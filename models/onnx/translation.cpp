#include "models/onnx/translation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "framework/error.h"
#include "layers/layers.h"
#include "models/graph_file.h"

namespace antichain::onnx {
namespace {

// Returns a name that a node can have: "/layer1/layer1.0/Conv" → "layer1.layer1.0.Conv".
std::string as_node_name(std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);
  for (char& c : name)
    if (c == '/')
      c = '.';
    else if (c <= ' ' || c == 0x7f || c == ',')  // or beyond ASCII
      c = '_';
  if (name.size() > most_graph_name_bytes - 16) name.resize(most_graph_name_bytes - 16);
  return name.empty() ? "node" : name;
}

template <class T>
void require(const char* what, const T& value, const T& supported) {
  if (value != supported) throw Unsupported{fmt::format("{} {}", what, value)};
}

}  // namespace

void only(const char* what, const std::string& value, const std::string& supported) {
  require(what, value, supported);
}
void only(const char* what, int64_t value, int64_t supported) { require(what, value, supported); }
void only(const char* what, float value, float supported) { require(what, value, supported); }

std::vector<int> natural(int rank) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<Part> weight_and_bias(Constant weight, Constant bias) {
  std::vector<Part> parts = {{"weight", std::move(weight)}};
  if (bias) parts.push_back({"bias", std::move(bias)});
  return parts;
}

bool Value::is_plain() const { return order == natural(int(order.size())); }

void Translation::begin(const Node& node) { node_ = &node; }

void Translation::enter(const std::string& name, Value value) {
  if (constants.has(name) || !values_.try_emplace(name, std::move(value)).second)
    throw Unsupported{fmt::format("a second tensor of the name '{}'", name.substr(0, 256))};
}

void Translation::give(size_t output, Value value) {
  if (output < node_->outputs.size() && !node_->outputs[output].empty())
    enter(node_->outputs[output], std::move(value));
}

void Translation::give(size_t output, NamedTensor value) {
  if (output < node_->outputs.size()) constants.add(node_->outputs[output], std::move(value));
}

const Value* Translation::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

Value Translation::computed(size_t i) const {
  const std::string& name = node_->input(i);
  if (const Value* value = find(name)) return *value;
  if (constants.has(name)) throw Unsupported{fmt::format("'{}' of a constant", node_->op)};
  throw Unsupported{
      fmt::format("'{}' of '{}', which no earlier node gives,", node_->op, name.substr(0, 256))};
}

Value Translation::input(size_t i) const {
  Value value = computed(i);
  if (value.is_padded())
    throw Unsupported{"padding by zeros for anything but a convolution and average pooling"};
  return value;
}

Constant Translation::constant(size_t i) { return has(i) ? constants.find(node_->input(i)) : nullptr; }

Constant Translation::weight(size_t i, const char* what) {
  Constant found = constant(i);
  if (!found || !found->is_float())
    throw Unsupported{fmt::format("'{}' with {} that is no float32 constant", node_->op, what)};
  return found;
}

std::vector<int64_t> Translation::integers(const char* attribute, size_t input,
                                           std::vector<int64_t> otherwise) {
  if (node_->find(attribute)) return node_->integers(attribute);
  if (!has(input)) return otherwise;
  const Constant found = constant(input);
  if (!found) throw Unsupported{fmt::format("'{}' with {} that are computed", node_->op, attribute)};
  return integers_of(*found, constants.origin());
}

std::vector<int64_t> Translation::shape(const Value& x) const {
  std::vector<int64_t> extents;
  const Shape& stored = graph.shape(x.node);
  for (const int axis : x.order) extents.push_back(stored[axis]);
  return extents;
}

int Translation::axis(const Value& x, int64_t axis) const {
  const int64_t found = axis_in(axis, rank(x));
  if (found < 0) throw Unsupported{fmt::format("axis {} of a tensor of {} axes", axis, rank(x))};
  return int(found);
}

std::string Translation::unique(std::string name) {
  const std::string wanted = as_node_name(std::move(name));
  name = wanted;
  for (int& taken = taken_[wanted]; !names_.insert(name).second;)
    name = fmt::format("{}~{}", wanted, ++taken);
  return name;
}

// A node with parameters has the name that they begin with: "conv1" of conv1.weight. So its parameters keep
// the names of the initializers. A parameter without a name of its own is the node's.
std::string Translation::name_of(const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const std::string ending = part.name.empty() ? "" : "." + part.name;
    const std::string& name = part.of->name;
    if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
    std::string prefix = name.substr(0, name.size() - ending.size());
    if (prefix == as_node_name(prefix) && !names_.contains(prefix)) return prefix;
  }
  return !node_->name.empty() ? node_->name : node_->outputs.empty() ? node_->op : node_->outputs[0];
}

// Exporters store equal tensors once, so vectors are copied. A matrix that two nodes share is one parameter
// of the model, which would become two.
void Translation::take_whole(const Constant& of) {
  if (of->shape.size() > 1 && of->elements() > 1 &&
      std::ranges::count(of->shape, 1) + 1 < int64_t(of->shape.size()) && !of->name.empty() &&
      !whole_.insert(of->name).second)
    throw Unsupported{fmt::format("the weight '{}' that another node uses, too,", of->name)};
}

Value Translation::emit(std::shared_ptr<const Op> op, const std::vector<Value>& x, std::vector<int> order,
                        const std::vector<Part>& parts) {
  const std::string name = unique(name_of(parts));
  std::vector<NodeId> inputs;
  for (const Value& value : x) inputs.push_back(value.node);
  NodeId id = -1;
  try {
    id = graph.add(name, std::move(op), inputs);
    graph.shape(id).elements();  // throws when there are too many
  } catch (const Error& error) {
    const std::string what = error.what(),
                      prefix = fmt::format("model '{}', node '{}': ", graph.model(), name);
    throw what.starts_with(prefix) ? Error(what.substr(prefix.size())) : error;
  }
  const Node& asked = *node_;
  const auto add = [&](const ParamSpec& spec) {
    const auto part = std::ranges::find(parts, spec.name, &Part::name);
    ANTICHAIN_CHECK(part != parts.end(), "a node was made without its parameters");
    NamedTensor tensor = *part->of;
    if (tensor.elements() != spec.shape.elements())
      throw Unsupported{fmt::format("'{}' with a {} of {} where {} is expected", asked.op,
                                    spec.name.empty() ? "factor" : spec.name, tensor.shape_text(),
                                    spec.shape.str())};
    take_whole(part->of);
    constants.take(tensor.elements());
    tensor.name = full_name(graph[id], spec);
    tensor.shape.assign(spec.shape.begin(), spec.shape.end());
    if (spec.dtype == DType::i32) tensor.shape.clear();  // a count
    weights.add(std::move(tensor));
  };
  std::ranges::for_each(graph[id].signature.params, add);
  std::ranges::for_each(graph[id].signature.buffers, add);
  return {id, order.empty() ? natural(graph.shape(id).rank()) : std::move(order)};
}

Value Translation::same(std::shared_ptr<const Op> op, const Value& x) {
  return emit(std::move(op), {x}, x.order);
}

Value Translation::plain(const Value& x) {
  return x.is_plain() ? x : emit(std::make_shared<Permute>(x.order), {x});
}

Value Translation::image(const Value& x, const char* what) {
  if (rank(x) != 4)
    throw Unsupported{fmt::format("'{}' of a tensor of {} axes that is not N x C x H x W", what, rank(x))};
  return plain(x);
}

Value Translation::reshape(const Value& x, const std::vector<int64_t>& of_sample) {
  const std::vector<int64_t> now = shape(x);
  if (std::vector<int64_t>(now.begin() + 1, now.end()) == of_sample) return x;
  if (of_sample.empty()) throw Unsupported{"a tensor of one number a sample without an axis for it"};
  if (of_sample.size() >= size_t(Shape::max_rank))
    throw Unsupported{fmt::format("a tensor of {} axes (there are at most {})", of_sample.size() + 1,
                                  int(Shape::max_rank))};
  const Value from = plain(x);
  if (of_sample.size() == 1 && rank(from) == 4) return emit(std::make_shared<Flatten>(), {from});
  return emit(std::make_shared<Reshape>(of_sample), {from});
}

Value Translation::over_channels(const std::vector<Value>& all, int axis,
                                 const std::function<Value(const std::vector<Value>&)>& of) {
  const int axes = rank(all[0]);
  const auto is_image = [&](const Value& x) { return rank(x) == 4 && x.order[size_t(axis)] == 1; };
  const bool same_order = std::ranges::all_of(all, [&](const Value& x) { return x.order == all[0].order; });
  if (is_image(all[0]) && same_order) {
    std::vector<Value> images = all;
    for (Value& x : images) x.order = natural(4);
    Value y = of(images);
    y.order = all[0].order;
    return y;
  }
  std::vector<int> order = {0, axis};
  for (int i = 1; i < axes; ++i)
    if (i != axis) order.push_back(i);
  std::vector<int64_t> rest;
  std::vector<Value> images;
  for (const Value& x : all) {
    Value moved = x;
    for (size_t i = 0; i < order.size(); ++i) moved.order[i] = x.order[size_t(order[i])];
    const std::vector<int64_t> extents = shape(moved);
    rest.assign(extents.begin() + 2, extents.end());
    int64_t product = 1;
    for (const int64_t extent : rest) product *= extent;
    images.push_back(axes == 4 ? plain(moved) : reshape(moved, {extents[1], product, 1}));
  }
  Value y = of(images);
  if (axes != 4) {
    std::vector<int64_t> back = {graph.shape(y.node)[1]};
    back.insert(back.end(), rest.begin(), rest.end());
    y = reshape(y, back);
  }
  std::vector<int> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[size_t(order[i])] = y.order[i];
  y.order = result;
  return y;
}

Value Translation::over_channels(const Value& x, int axis, const std::function<Value(const Value&)>& of) {
  return over_channels(std::vector{x}, axis, [&](const std::vector<Value>& all) { return of(all[0]); });
}

}  // namespace antichain::onnx
