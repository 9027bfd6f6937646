#include "app/commands/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/files/state_dict.h"
#include "layers/softmax_cross_entropy.h"

namespace antichain {
namespace {

constexpr const char* record_again = "record the network again";

// Returns the shape as far as one can be printed.
std::string shape_text(const NamedNumbers& t) {
  if (t.shape.empty()) return "a scalar";
  const std::ptrdiff_t axes = std::min<std::ptrdiff_t>(std::ssize(t.shape), Shape::max_rank);
  return Shape(std::vector<int64_t>(t.shape.begin(), t.shape.begin() + axes)).str();
}

}  // namespace

Recording::Recording(const std::string& file) : file_(file) {
  for (NamedNumbers& t : numbers_from_safetensors(read_bounded(file, most_weights_bytes), file))
    tensors_.emplace(t.name, std::move(t));
}

const NamedNumbers* Recording::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const NamedNumbers& Recording::at(const std::string& name) const {
  if (const NamedNumbers* found = find(name)) return *found;
  throw Error(fmt::format("{} has no tensor '{}'", file_, name), record_again);
}

std::string Recording::float32_error(const std::string& of) { return "float32_error." + of; }

double Recording::error_of_float32(const std::string& of, size_t i) const {
  const NamedNumbers* found = find(float32_error(of));
  return found ? found->values.at(i) : HUGE_VAL;
}

int Recording::samples(const std::string& input) const {
  const NamedNumbers& t = at("input." + input);
  if (t.shape.empty() || t.shape[0] < 1 || t.shape[0] > 1'000'000)
    throw Error(fmt::format("{}: '{}' has no samples, or more than a million", file_, t.name), record_again);
  return int(t.shape[0]);
}

void Recording::check_shape(const std::string& name, const Shape& shape) const {
  const NamedNumbers& t = at(name);
  if (!std::ranges::equal(t.shape, shape))
    throw Error(
        fmt::format("{}: '{}' is {}, but the network has {}", file_, name, shape_text(t), shape.str()),
        record_again);
}

void Recording::check_tensors(const Graph& model) const {
  std::set<std::string> known = {"loss", "losses", float32_error("losses")};
  for (const Node& node : model) {
    const bool input = node.role() == Role::input;
    const std::string name = (input ? "input." : "node.") + node.name;
    known.insert(name);
    if (input || find(name)) check_shape(name, node.signature.y.shape);
    for (const ParamSpec& param : node.signature.params) {
      if (!param.trained) continue;
      const std::string gradient = "gradient." + model.file_name(node, param);
      known.insert({gradient, float32_error(gradient)});
      check_shape(gradient, param.shape);
      if (find(float32_error(gradient))) check_shape(float32_error(gradient), {});
    }
  }
  for (const StateEntry& entry : state_entries(model)) {
    const std::string after = "after." + entry.file_name;
    known.insert({after, float32_error(after)});
    if (find(after)) check_shape(after, entry.spec->dtype == DType::i32 ? Shape() : entry.spec->shape);
    if (find(float32_error(after))) check_shape(float32_error(after), {});
  }
  for (const auto& [name, unused] : tensors_)
    if (!known.contains(name))
      throw Error(fmt::format("{} has a tensor '{}', which is nothing of this network", file_, name),
                  record_again);
}

void Recording::check_labels(const Graph& model) const {
  for (const Node& node : model) {
    const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(node.op.get());
    if (!loss || model[node.inputs[1]].signature.y.dtype != DType::i32) continue;
    const int64_t classes = loss->sizes(model.shape(node.inputs[0])).classes;
    for (const double label : at("input." + model[node.inputs[1]].name).values)
      if (!(label >= 0 && label < double(classes)) && label != loss->options.ignore_index)
        throw Error(fmt::format("{}: a label is {}, but the network has {} classes", file_, label, classes),
                    "labels count from 0");
  }
}

void Recording::check_losses() const {
  constexpr size_t most_steps = 100;
  const size_t steps = at("losses").values.size();
  if (at("loss").values.size() != 1 || steps < 1 || steps > most_steps)
    throw Error(fmt::format("{}: 'loss' is one number, and 'losses' are 1 to {}", file_, most_steps),
                record_again);
  if (const NamedNumbers* errors = find(float32_error("losses")); errors && errors->values.size() != steps)
    throw Error(
        fmt::format("{}: '{}' has {}, but 'losses' {}", file_, errors->name, errors->values.size(), steps),
        record_again);
}

Graph Recording::network(const GraphFile& file) const {
  ModelOptions options{.microbatch = 2, .dropout = 0, .stochastic_depth = 0};
  const Graph any_batch = file.graph(options);
  for (const Node& node : any_batch) {
    if (node.role() != Role::input) continue;
    options.microbatch = samples(node.name);
    if (node.signature.y.dtype == DType::i32 && node.signature.y.shape.rank() == 1)
      options.soft_labels = at("input." + node.name).shape.size() == 2;
  }
  Graph model = file.graph(options);
  check_tensors(model);
  check_labels(model);
  check_losses();
  return model;
}

}  // namespace antichain
