#include "framework/computed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "framework/error.h"
#include "framework/reorder.h"

namespace antichain {
namespace {

// A Leaf stands for a parameter or a buffer that steps read.
class Leaf : public Op {
 public:
  explicit Leaf(const Shape& shape) : spec_{.shape = shape} {}
  std::string_view type() const override { return "leaf"; }
  std::string str() const override { return "leaf"; }
  Role role() const override { return Role::input; }
  Signature infer(std::span<const Shape>) const override {
    Signature signature;
    signature.y = spec_;
    return signature;
  }

 private:
  TensorSpec spec_;
};

Shape as_sample(const Shape& shape) {
  std::vector<int64_t> extents = {1};
  extents.insert(extents.end(), shape.begin(), shape.end());
  if (extents.size() > size_t(Shape::max_rank))
    throw Error(fmt::format("a parameter of {} has more than the {} axes that steps can compute with",
                            shape.str(), Shape::max_rank - 1));
  return Shape(extents);
}

std::string name_of_step(int step) { return fmt::format("s{}", step); }

const ParamSpec* find(const std::vector<ParamSpec>& specs, const std::string& name) {
  const auto found = std::ranges::find(specs, name, &ParamSpec::name);
  return found == specs.end() ? nullptr : &*found;
}

// Returns whether each step is needed for the result of one.
std::vector<bool> needed_for(const ComputedOptions& o, int result) {
  std::vector<bool> needed(o.steps.size());
  needed[size_t(result)] = true;
  for (int step = result; step >= 0; --step)
    for (int earlier = 0; needed[size_t(step)] && earlier < step; ++earlier)
      if (std::ranges::count(o.steps[size_t(step)].inputs, name_of_step(earlier)) > 0)
        needed[size_t(earlier)] = true;
  return needed;
}

}  // namespace

Graph graph_of_steps(const ComputedOptions& o, int result) {
  Graph graph("a computed parameter");
  const std::vector<bool> needed = needed_for(o, result);
  const auto value = [&](const std::string& name) {
    if (const NodeId id = graph.find(name); id >= 0) return id;
    if (const ParamSpec* param = find(o.parameters, name))
      return graph.add(name, std::make_shared<Leaf>(as_sample(param->shape)), {});
    const ParamSpec* buffer = find(o.buffers, name);
    if (!buffer)
      throw Error(
          fmt::format("a step of a computed operator reads '{}', which is no earlier step, parameter "
                      "or buffer of it",
                      name));
    const NodeId leaf = graph.add("buffer " + name, std::make_shared<Leaf>(as_sample(buffer->shape)), {});
    return graph.add(name, std::make_shared<Reorder>(Layout::plain), {leaf});
  };
  for (int step = 0; step <= result; ++step) {
    if (!needed[size_t(step)]) continue;
    const auto& [op, names] = o.steps[size_t(step)];
    std::vector<NodeId> inputs;
    for (const std::string& name : names) inputs.push_back(value(name));
    const NodeId id = graph.add(name_of_step(step), op, inputs);
    if (!graph[id].signature.params.empty() || op->type().find("drop") != op->type().npos ||
        op->type() == "stochastic_depth")
      throw Error(
          fmt::format("{} can't compute a parameter, because it has parameters or random numbers of "
                      "its own",
                      op->str()));
  }
  return graph;
}

Computed::Computed(ComputedOptions o) : options(std::move(o)) {
  if (options.values.empty()) throw Error("a computed operator computes a parameter at least");
  std::vector<std::string> names;
  for (const auto* specs : {&options.parameters, &options.buffers})
    for (const ParamSpec& spec : *specs) names.push_back(spec.name);
  for (int step = 0; step < int(options.steps.size()); ++step) names.push_back(name_of_step(step));
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw Error(fmt::format("a computed operator has two values of the name '{}'", *twice), "rename one");
  std::set<std::string> read;
  for (const auto& [parameter, step] : options.values) {
    if (step < 0 || step >= int(options.steps.size()))
      throw Error(
          fmt::format("the parameter '{}' is the result of step {}, which there is not", parameter, step));
    for (const Node& node : graph_of_steps(options, step)) read.insert(node.name);
  }
  for (const auto* specs : {&options.parameters, &options.buffers})
    for (const ParamSpec& spec : *specs)
      if (!read.contains(spec.name))
        throw Error(fmt::format("a computed operator has '{}', which no step needs", spec.name),
                    "leave it out");
}

std::string Computed::str() const {
  std::string text = fmt::format("computed({}", options.of->str());
  for (const auto& [parameter, step] : options.values)
    text += fmt::format("; {} = {}", parameter, name_of_step(step));
  for (size_t i = 0; i < options.steps.size(); ++i)
    text += fmt::format("; s{} = {} of {}", i, options.steps[i].op->str(),
                        fmt::join(options.steps[i].inputs, ", "));
  for (const auto* specs : {&options.parameters, &options.buffers})
    for (const ParamSpec& spec : *specs) text += fmt::format("; {} {}", spec.name, spec.shape.str());
  return text + ")";
}

Signature Computed::infer(std::span<const Shape> x) const {
  Signature s = options.of->infer(x);
  s.buffers.insert(s.buffers.end(), options.buffers.begin(), options.buffers.end());
  for (const auto& [parameter, step] : options.values) {
    const ParamSpec* param = find(s.params, parameter);
    if (!param)
      throw Error(
          fmt::format("{} has no parameter '{}' that could be computed", options.of->str(), parameter));
    const Graph graph = graph_of_steps(options, step);
    const Shape result = graph.shape(graph.size() - 1);
    if (result != as_sample(param->shape))
      throw Error(fmt::format("the parameter '{}' of {} is of {}, but what is computed for it is of {}",
                              parameter, options.of->str(), as_sample(param->shape).str(), result.str()));
    s.params.erase(s.params.begin() + (param - s.params.data()));
    for (const Node& node : graph) {
      const Signature& own = node.signature;
      s.buffers.insert(s.buffers.end(), own.buffers.begin(), own.buffers.end());
      s.statistics.insert(s.statistics.end(), own.statistics.begin(), own.statistics.end());
      s.forward_flops += own.forward_flops;
    }
  }
  s.params.insert(s.params.end(), options.parameters.begin(), options.parameters.end());
  return s;
}

}  // namespace antichain
