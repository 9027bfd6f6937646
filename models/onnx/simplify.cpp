#include "models/onnx/simplify.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <unordered_set>

#include "models/onnx/pattern.h"
#include "models/onnx/window_means.h"

namespace antichain::onnx {
namespace {

// A Rule says what a pattern becomes: an operator, the letters that are its inputs, and a function that sets
// its attributes, or returns false where the pattern means something else.
struct Rule {
  std::string pattern, op, inputs;
  std::function<bool(const Match&, Constants&, Node&)> settle;
};

std::vector<int64_t> axes_of_mean(const Node& mean, Constants& constants) {
  if (mean.inputs.size() < 2) return mean.integers("axes");
  const Constant axes = constants.find(mean.inputs[1]);
  return axes ? integers_of(*axes, constants.origin()) : std::vector<int64_t>{};
}

bool settle_layer_norm(const Match& m, Constants& constants, Node& into) {
  const std::vector<const Node*> means = m.all("ReduceMean");
  const std::vector<int64_t> axes = axes_of_mean(*means[0], constants);
  const std::optional<double> eps = number_of(*constants.find(m.letters.at('E')));
  if (axes.empty() || !eps || axes_of_mean(*means[1], constants) != axes) return false;
  if (std::ranges::any_of(means, [](const Node* mean) { return mean->integer("keepdims", 1) != 1; }))
    return false;
  into.set("axes", axes).set("epsilon", float(*eps));
  return true;
}

bool settle_group_norm(const Match& m, Constants& constants, Node& into) {
  const std::vector<int64_t> shape = integers_of(*constants.find(m.letters.at('S')), constants.origin());
  const auto all = [&](char letter, float value) {
    const Constant c = constants.find(m.letters.at(letter));
    const auto* values = std::get_if<std::vector<float>>(&c->values);
    return values && std::ranges::all_of(*values, [&](float v) { return v == value; });
  };
  if (shape.size() != 3 || shape[0] != 0 || shape[2] != -1 || !all('O', 1) || !all('Z', 0)) return false;
  into.set("num_groups", shape[1]).set("per_channel", int64_t(1));
  into.set("epsilon", m.node("InstanceNormalization").real("epsilon", 1e-5f));
  return true;
}

bool settle_adaptive_pool(const Match& m, Constants& constants, Node& into) {
  const Constant rows = constants.find(m.letters.at('R')), columns = constants.find(m.letters.at('C'));
  if (!averages_rows(*rows) || !averages_columns(*columns)) return false;
  into.set("input_size", std::vector<int64_t>{rows->shape[1], columns->shape[0]});
  into.set("output_size", std::vector<int64_t>{rows->shape[0], columns->shape[1]});
  return true;
}

// The node keeps the attributes of the one that it extends.
auto extends(std::string op) {
  return [op](const Match& m, Constants& constants, Node& into) {
    into.attributes = m.node(op).attributes;
    if (op == "MatMul") return constants.find(m.letters.at('B'))->shape.size() == 1;
    // A weight of a LayerNorm over the last axes has their shape; a factor of every channel is no such one.
    const int64_t axes = op == "LayerNormalization" ? int64_t(into.integers("axes").size()) : 1;
    const char last = m.letters.contains('B') ? 'B' : 'W';
    const Constant weight = constants.find(m.letters.at(last));
    const bool channels = into.integers("axes") == std::vector<int64_t>{1} || op == "GroupNormalization";
    return channels ? std::ranges::count(weight->shape, 1) >= int64_t(weight->shape.size()) - 1
                    : int64_t(weight->shape.size()) == axes;
  };
}

bool plain(const Match&, Constants&, Node&) { return true; }
// Says whether the constant C is this number, so that the node changes nothing.
auto neutral(double number) {
  return [number](const Match& m, Constants& constants, Node&) {
    return is_number(constants.find(m.letters.at('C')), number);
  };
}
bool tanh_form(const Match&, Constants&, Node& into) {
  into.set("approximate", std::string_view("tanh"));
  return true;
}
bool settle_hardsigmoid(const Match&, Constants&, Node& into) {
  into.set("alpha", 1.0f / 6).set("beta", 0.5f);
  return true;
}
bool is_hardsigmoid(const Match& m, Constants&, Node&) {
  const Node& node = m.node("HardSigmoid");
  return std::abs(node.real("alpha", 0.2f) - 1.0f / 6) < 1e-4f && node.real("beta", 0.5f) == 0.5f;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {"Mul(x, C)", "Identity", "x", neutral(1)},
      {"Add(x, C)", "Identity", "x", neutral(0)},
      {"Mul(0.5, x, Add(1, Erf(Div(x, 1.4142135))))", "Gelu", "x", plain},
      {"Mul(0.5, x, Add(1, Erf(Mul(x, 0.70710678))))", "Gelu", "x", plain},
      {"Mul(0.5, x, Add(1, Tanh(Mul(0.79788456, Add(x, Mul(0.044715, Pow(x, 3)))))))", "Gelu", "x",
       tanh_form},
      {"Mul(0.5, x, Add(1, Tanh(Mul(0.79788456, Add(x, Mul(0.044715, x, x, x))))))", "Gelu", "x", tanh_form},
      {"Div(Clip(Add(x, 3), 0, 6), 6)", "HardSigmoid", "x", settle_hardsigmoid},
      {"Mul(Clip(Add(x, 3), 0, 6), 0.16666667)", "HardSigmoid", "x", settle_hardsigmoid},
      {"Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", "HardSwish", "x", plain},
      {"Mul(x, HardSigmoid(x))", "HardSwish", "x", is_hardsigmoid},
      {"Mul(x, Sigmoid(x))", "Swish", "x", plain},
      {"Div(d=Sub(x, ReduceMean(x)), Sqrt(Add(ReduceMean(Pow(d, 2)), E)))", "LayerNormalization", "x",
       settle_layer_norm},
      {"Div(d=Sub(x, ReduceMean(x)), Sqrt(Add(ReduceMean(Mul(d, d)), E)))", "LayerNormalization", "x",
       settle_layer_norm},
      {"Mul(LayerNormalization(x), W)", "LayerNormalization", "xW", extends("LayerNormalization")},
      {"Add(LayerNormalization(x, W), B)", "LayerNormalization", "xWB", extends("LayerNormalization")},
      {"Reshape(InstanceNormalization(Reshape(x, S), O, Z), t)", "GroupNormalization", "x",
       settle_group_norm},
      {"Reshape(InstanceNormalization(Reshape(x, S), O, Z), T)", "GroupNormalization", "x",
       settle_group_norm},
      {"Mul(GroupNormalization(x), W)", "GroupNormalization", "xW", extends("GroupNormalization")},
      {"Add(GroupNormalization(x, W), B)", "GroupNormalization", "xWB", extends("GroupNormalization")},
      {"MatMul(R, MatMul(x, C))", "AveragePool", "x", settle_adaptive_pool},
      {"Add(MatMul(x, W), B)", "MatMul", "xWB", extends("MatMul")},
  };
  return table;
}

// Returns the rules by the operator of their last node.
const std::multimap<std::string, std::pair<Pattern, const Rule*>>& rules_by_op() {
  static const auto by_op = [] {
    std::multimap<std::string, std::pair<Pattern, const Rule*>> all;
    for (const Rule& rule : rules()) {
      const Pattern pattern = pattern_of(rule.pattern);
      all.emplace(pattern.op, std::pair(pattern, &rule));
    }
    return all;
  }();
  return by_op;
}

void recognise(Node& node, const Matcher& matcher, Constants& constants) {
  const auto [first, last] = rules_by_op().equal_range(node.op);
  for (auto it = first; it != last; ++it) {
    const auto& [pattern, rule] = it->second;
    Match match;
    if (!matcher.matches(pattern, node, match)) continue;
    Node becomes{.name = node.name, .op = rule->op, .outputs = node.outputs};
    if (!rule->settle(match, constants, becomes)) continue;
    for (const char letter : rule->inputs) becomes.inputs.push_back(match.letters.at(letter));
    node = std::move(becomes);
    return;
  }
}

}  // namespace

void simplify(Model& model, Constants& constants) {
  std::vector<Node>& nodes = model.graph.nodes;
  std::unordered_map<std::string, std::string> same;  // outputs of Identity
  std::unordered_map<std::string, const Node*> makers;
  const Matcher matcher(makers, constants);
  const auto original = [&](std::string& name) {
    if (const auto found = same.find(name); found != same.end()) name = found->second;
  };
  for (Node& node : nodes) {
    std::ranges::for_each(node.inputs, original);
    if (std::optional<NamedTensor> value = constants.fold(node)) {
      constants.add(node.outputs[0], std::move(*value));
      continue;
    }
    recognise(node, matcher, constants);
    if (node.op == "Identity" && node.inputs.size() == 1 && node.outputs.size() == 1)
      same[node.outputs[0]] = node.inputs[0];
    else
      for (const std::string& output : node.outputs) makers[output] = &node;
  }
  std::unordered_set<std::string> used;
  for (ValueInfo& output : model.graph.outputs) original(output.name), used.insert(output.name);
  std::vector<Node> kept;
  for (size_t i = nodes.size(); i-- > 0;) {
    Node& node = nodes[i];
    const bool wanted = std::ranges::any_of(node.outputs, [&](const std::string& output) {
      const auto maker = makers.find(output);
      return !output.empty() && used.contains(output) && maker != makers.end() && maker->second == &node;
    });
    if (!wanted) continue;
    used.insert(node.inputs.begin(), node.inputs.end());
    kept.push_back(std::move(node));
  }
  std::ranges::reverse(kept);
  nodes = std::move(kept);
}

}  // namespace antichain::onnx
