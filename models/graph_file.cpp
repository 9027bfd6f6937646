#include "models/graph_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "framework/error.h"
#include "framework/json.h"
#include "layers/attention.h"
#include "layers/dropout.h"
#include "layers/input.h"
#include "layers/operators.h"
#include "layers/softmax_cross_entropy.h"
#include "layers/stochastic_depth.h"

namespace antichain {
namespace {

constexpr int64_t most_extent_of_input = 1 << 20;
// A tensor of one sample may have as many numbers, so that no extent behind it overflows.
constexpr int64_t most_elements_of_sample = int64_t(1) << 40;
constexpr size_t most_inputs_of_node = 1 << 16;  // so that no sum of their channels overflows
constexpr int checked_microbatch = 2;            // batch norm wants two
constexpr size_t most_where_bytes = 300;

bool is_control_or_blank(char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }

// Names of nodes become names of parameters, which can't have a slash (framework/files/weights.h), and words
// of options, which blanks and commas end.
bool is_node_name(const std::string& name) {
  return !name.empty() && name.size() <= most_graph_name_bytes &&
         std::ranges::none_of(name, [](char c) { return is_control_or_blank(c) || c == '/' || c == ','; });
}

// Names of models become parts of the names of files.
bool is_model_name(const std::string& name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 64 && is_letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || c == '-' || c == '.'; });
}

std::string name_of_node(const JsonReader& from) {
  const std::string name = from.string();
  if (!is_node_name(name))
    from.fail(fmt::format("a name has 1 to {} characters, no blanks, commas or slashes among them",
                          most_graph_name_bytes));
  return name;
}

}  // namespace

// Fills a GraphFile from JSON.
class GraphFile::Reading {
 public:
  Reading(GraphFile& into, const nlohmann::json& file) : into_(into), file_(file), top_(file, into.origin_) {}

  void run() {
    if (top_.at("format").string() != graph_format)
      top_.at("format").fail(fmt::format("\"{}\" is expected here", graph_format));
    const int64_t version = top_.at("version").integer();
    if (version != graph_version)
      top_.at("version").fail(
          fmt::format("version {} is not known to this program, which reads {}", version, graph_version));
    into_.model_ = top_.at("model").string();
    if (!is_model_name(into_.model_)) top_.at("model").fail("a name has 1 to 64 letters, digits, _, - and .");
    if (top_.has("made_by")) into_.made_by_ = top_.at("made_by").string();
    read_inputs();
    read_nodes();
    if (top_.has("state_dict")) read_state();
    if (top_.has("frozen"))
      for (const Json& name : array("frozen", most_graph_nodes))
        into_.frozen_.insert(name.is_string() ? name.get<std::string>() : name.dump());
    top_.done();
  }

 private:
  using Json = nlohmann::json;

  // Returns the values of an array without a reader for each: the text of its path would be as long again.
  const Json& array(const char* key, size_t most) {
    const JsonReader field = top_.at(key);
    if (!field.is_array()) field.fail("an array […] is expected here");
    const Json& values = file_[key];
    if (values.empty()) field.fail("it is empty");
    if (values.size() > most)
      field.fail(fmt::format("it has {} entries, and {} are the most", values.size(), most));
    return values;
  }

  void read_inputs() {
    size_t place = 0;
    for (const Json& value : array("inputs", most_graph_inputs)) {
      JsonReader from(value, into_.origin_, fmt::format("inputs[{}]", place++));
      Input input{.name = name_of_node(from.at("name"))};
      const std::vector<JsonReader> extents = from.at("shape").elements();
      if (extents.size() >= size_t(Shape::max_rank))
        from.at("shape").fail(fmt::format("{} axes of a sample are the most", Shape::max_rank - 1));
      for (const JsonReader& extent : extents) input.shape.push_back(extent.integer(1, most_extent_of_input));
      const std::string dtype = from.at("dtype").string();
      if (dtype != "float32" && dtype != "int32") from.at("dtype").fail("float32 or int32 is expected here");
      input.dtype = dtype == "float32" ? DType::f32 : DType::i32;
      if (from.has("target")) input.target = from.at("target").boolean();
      from.done();
      enter(input.name, from);
      into_.inputs_.push_back(std::move(input));
    }
  }

  void read_nodes() {
    size_t place = 0;
    const Json& nodes = array("nodes", most_graph_nodes);
    into_.nodes_.reserve(nodes.size());
    for (const Json& value : nodes) {
      JsonReader at_place(value, into_.origin_, fmt::format("nodes[{}]", place++));
      FileNode node{.name = name_of_node(at_place.at("name"))};
      if (at_place.has("from")) {
        std::string where = at_place.at("from").string();
        if (where.size() > most_where_bytes) where.resize(most_where_bytes);
        if (!where.empty()) node.where = fmt::format(" ({})", where);
      }
      JsonReader from(value, into_.origin_, fmt::format("node '{}'{}", node.name, node.where));
      for (const char* known : {"name", "from"})
        if (from.has(known)) from.at(known);
      const JsonReader type = from.at("op");
      const std::vector<JsonReader> inputs = from.at("inputs").elements();
      if (inputs.size() > most_inputs_of_node)
        from.at("inputs").fail(fmt::format("{} are the most", most_inputs_of_node));
      for (const JsonReader& input : inputs) node.inputs.push_back(earlier(input));
      node.op = read_op(type.string(), node.name, from);
      if (from.has("shared")) read_shared(node, value["shared"], from.at("shared"));
      from.done();
      enter(node.name, from);
      into_.nodes_.push_back(std::move(node));
    }
  }

  StateDict& state() {
    if (!into_.state_) into_.state_ = std::make_shared<StateDict>();
    return *into_.state_;
  }

  // Reads which of the node's parameters are those of earlier nodes.
  void read_shared(const FileNode& node, const Json& value, JsonReader from) {
    if (!from.is_object()) from.fail("an object {…} of names of parameters is expected here");
    for (const auto& [param, of] : value.items())
      state().shared[param.empty() ? node.name : node.name + "." + param] = from.at(param).string();
  }

  // Reads names of weights that differ from those of the nodes, and tensors that no node has. A whole
  // number is a count, as that of batches.
  void read_state() {
    StateDict* const state = &this->state();
    state->keeper = into_.nodes_.back().name;
    size_t place = 0;
    for (const Json& value : array("state_dict", most_graph_nodes)) {
      JsonReader from(value, into_.origin_, fmt::format("state_dict[{}]", place++));
      std::string own;
      if (from.has("also")) {
        state->also[from.at("name").string()] = from.at("also").string();
        from.done();
        continue;
      }
      if (from.has("is")) {
        own = from.at("is").string();
      } else {
        ParamSpec spec{
            .name = fmt::format("kept{}", state->kept.size()), .shape = {}, .init = Initialiser::constant(0)};
        const std::vector<JsonReader> extents = from.at("shape").elements();
        if (extents.size() > size_t(Shape::max_rank))
          from.at("shape").fail(fmt::format("{} axes are the most", int(Shape::max_rank)));
        std::vector<int64_t> shape;
        for (const JsonReader& extent : extents) shape.push_back(extent.integer(0, most_elements_of_sample));
        const std::string dtype = from.at("dtype").string();
        if (dtype != "float32" && (dtype != "int64" || !shape.empty()))
          from.at("dtype").fail("float32 is expected here, or int64 for one whole number");
        if (dtype == "int64") spec.dtype = DType::i32, shape = {1};
        spec.shape = Shape(shape);
        if (std::ranges::find(shape, 0) == shape.end()) spec.shape.elements();
        own = fmt::format("{}.{}", state->keeper, spec.name);
        state->kept.push_back(std::move(spec));
      }
      const std::string name = from.at("name").string();
      from.done();
      if (!state->names.try_emplace(own, name).second)
        from.fail(fmt::format("'{}' has another name, too", own));
    }
  }

  std::shared_ptr<const Op> read_op(const std::string& type, const std::string& node, JsonReader& from) {
    const bool has_options = from.has("options");
    std::optional<JsonReader> options;
    if (has_options) options.emplace(from.at("options"));
    if (has_options && !options->is_object()) options->fail("an object {…} is expected here");
    try {
      return read_operator(type, node, options ? &*options : nullptr);
    } catch (const Error& error) {
      const std::string what = error.what();
      if (what.starts_with(into_.origin_)) throw;  // it names the field already
      from.fail(what);
    }
  }

  NodeId earlier(const JsonReader& from) const {
    const std::string name = from.string();
    const auto found = ids_.find(name);
    if (found == ids_.end())
      from.fail(
          fmt::format("there is no input and no earlier node '{}'", name.substr(0, most_graph_name_bytes)));
    return found->second;
  }

  void enter(const std::string& name, const JsonReader& from) {
    if (!ids_.try_emplace(name, NodeId(ids_.size())).second)
      from.fail(fmt::format("another node or input has the name '{}', too", name));
  }

  GraphFile& into_;
  const Json& file_;
  JsonReader top_;
  std::unordered_map<std::string, NodeId> ids_;
};

GraphFile::GraphFile(const std::string& text, std::string origin) : origin_(std::move(origin)) {
  const nlohmann::json file = parse_json(text, origin_);
  Reading(*this, file).run();
  check_uses();
  check_shapes();
}

void GraphFile::fail(const FileNode& node, const std::string& why, const std::string& hint) const {
  throw Error(fmt::format("{}: node '{}'{}: {}", origin_, node.name, node.where, why), hint);
}

// Checks what the pipeline relies on: a loss at the end, and no node whose gradient nothing gives.
void GraphFile::check_uses() {
  const size_t inputs = inputs_.size();
  const auto is_loss = [](const FileNode& node) { return node.op->role() == Role::loss; };
  if (!is_loss(nodes_.back()))
    fail(nodes_.back(), "the last node is no loss", "end the network with a softmax_cross_entropy");
  std::vector<bool> used(inputs + nodes_.size()), computed_with(inputs);
  for (const FileNode& node : nodes_)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const size_t from = size_t(node.inputs[i]);
      const bool loss = is_loss(node), labels = loss && node.op->type() == "softmax_cross_entropy" && i == 1;
      const bool wants_integers = node.op->wants(i, node.inputs.size()) == Wants::integers;
      used[from] = true;
      if (from < inputs) {
        if (labels)
          inputs_[from].labels = true;
        else if (!loss)
          computed_with[from] = true;
        if (inputs_[from].dtype != DType::i32 && wants_integers && !labels)
          fail(node, fmt::format("it wants integers, which '{}' has not", inputs_[from].name),
               "give the input the dtype int32");
      } else if (labels) {
        fail(node, "its labels are computed", "a loss takes its labels from an input of the network");
      } else if (wants_integers) {
        fail(node, "it wants integers, and what is computed has none", "take them from an input");
      } else if (is_loss(nodes_[from - inputs])) {
        fail(node, "it uses a loss", "leave it out");
      }
    }
  for (size_t i = 0; i < inputs; ++i)
    if (!used[i] || (inputs_[i].labels && computed_with[i]))
      throw Error(
          fmt::format("{}: {} the input '{}'", origin_,
                      used[i] ? "a loss takes its labels from what others compute with," : "nothing uses",
                      inputs_[i].name),
          used[i] ? "give the labels an input of their own" : "leave it out");
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!used[inputs + i] && !is_loss(nodes_[i])) fail(nodes_[i], "nothing uses its output", "leave it out");
}

namespace {

const StochasticDepth* depth_of(const Op& op) { return dynamic_cast<const StochasticDepth*>(&op); }

// Returns an attention that has a dropout.
const Attention* dropping_attention(const Op& op) {
  const auto* attention = dynamic_cast<const Attention*>(&op);
  return attention && attention->options.dropout > 0 ? attention : nullptr;
}

// Returns the share of numbers or of channels that a dropout drops.
std::optional<double> dropped(const Op& op) {
  if (const auto* dropout = dynamic_cast<const Dropout*>(&op)) return dropout->p;
  if (const Attention* attention = dropping_attention(op)) return double(attention->options.dropout);
  const StochasticDepth* depth = depth_of(op);
  return depth && depth->drop == Drop::channel ? std::optional(depth->p) : std::nullopt;
}

// Returns the share of samples that stochastic depth drops.
std::optional<double> dropped_samples(const Op& op) {
  const StochasticDepth* depth = depth_of(op);
  return depth && depth->drop != Drop::channel ? std::optional(depth->p) : std::nullopt;
}

double largest_share(const auto& nodes, auto&& share) {
  double most = 0;
  for (const auto& node : nodes) most = std::max(most, share(*node.op).value_or(0));
  return most;
}

}  // namespace

// Infers all shapes once, so that a network that is read can be built, and notes what it has.
void GraphFile::check_shapes() {
  const Graph graph = build({.microbatch = checked_microbatch});
  std::set<std::string> params, full_names, frozen;
  size_t renamed = 0;
  StateDict::Names unshared = state_ ? state_->shared : StateDict::Names();
  for (const Node& node : graph) {
    for (const ParamSpec& param : node.signature.params)
      if (frozen_.erase(graph.file_name(node, param)) > 0) frozen.insert(full_name(node, param));
    const auto enter = [&](const ParamSpec& spec) {
      if (!spec.of.empty()) unshared.erase(spec.name.empty() ? node.name : node.name + "." + spec.name);
      if (!spec.of.empty()) return;
      full_names.insert(antichain::full_name(node, spec));
      const std::string name = graph.file_name(node, spec);
      renamed += name != antichain::full_name(node, spec);
      if (!params.insert(name).second)
        throw Error(fmt::format("{}: two nodes have a parameter '{}'", origin_, name), "rename one of them");
    };
    std::ranges::for_each(node.signature.params, enter);
    std::ranges::for_each(node.signature.buffers, enter);
  }
  if (state_ && renamed != state_->names.size())
    throw Error(fmt::format("{}: state_dict renames what no node has", origin_), "leave it out");
  if (!frozen_.empty())
    throw Error(fmt::format("{}: '{}' is to be frozen, but the network has no such parameter", origin_,
                            *frozen_.begin()),
                "leave it out");
  if (!frozen.empty()) {
    if (!state_) state_ = std::make_shared<StateDict>();
    state_->frozen.insert(frozen.begin(), frozen.end());
  }
  const Node& last = graph[graph.size() - 1];
  if (const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(last.op.get())) {
    classes_ = loss->sizes(graph.shape(last.inputs[0])).classes;
    if (classes_ < 2)
      throw Error(fmt::format("{}: the network has one class", origin_), "a loss takes two at least");
  }
  for (const auto& [name, of] : state_ ? state_->also : StateDict::Names())
    if (!full_names.contains(of) || !params.insert(name).second)
      throw Error(fmt::format("{}: state_dict has '{}' as a further name of '{}', which is {}", origin_, name,
                              of, full_names.contains(of) ? "another's name" : "no parameter"),
                  "leave it out");
  for (const auto& [name, uses] : graph.shared())
    if (const Node& node = graph[uses[0].node]; !node.signature.params[size_t(uses[0].param)].of.empty())
      throw Error(fmt::format("{}: node '{}' shares '{}', which is no parameter of an earlier node", origin_,
                              node.name, name),
                  "give the full name of one");
  if (!unshared.empty())
    throw Error(fmt::format("{}: '{}' shares '{}', but there is no parameter '{}'", origin_,
                            unshared.begin()->first, unshared.begin()->second, unshared.begin()->first),
                "leave it out");
  usual_ = {.image = 0,
            .dropout = largest_share(nodes_, dropped),
            .stochastic_depth = largest_share(nodes_, dropped_samples)};
  for (const Input& input : inputs_)
    if (!input.labels && input.shape.size() == 3) {
      usual_.image = int(input.shape[1]);
      if (input.shape[0] == 1) usual_.channels = 1;
    }
}

std::shared_ptr<const Op> GraphFile::op_of(const FileNode& node, const ModelOptions& o) const {
  const StochasticDepth* depth = depth_of(*node.op);
  if (o.dropout && dropped(*node.op)) {
    if (depth) return std::make_shared<StochasticDepth>(*o.dropout, depth->drop, node.name);
    if (const Attention* attention = dropping_attention(*node.op)) {
      AttentionOptions options = attention->options;
      options.dropout = float(*o.dropout);
      return std::make_shared<Attention>(options, node.name);
    }
    return std::make_shared<Dropout>(*o.dropout, node.name);
  }
  if (const auto share = dropped_samples(*node.op); share && o.stochastic_depth) {
    const double most = usual_.stochastic_depth;
    return std::make_shared<StochasticDepth>(most > 0 ? *share / most * *o.stochastic_depth : 0, depth->drop,
                                             node.name);
  }
  if (const auto* loss = dynamic_cast<const SoftmaxCrossEntropy*>(node.op.get());
      loss && o.label_smoothing > 0) {
    LossOptions options = loss->options;
    options.label_smoothing = o.label_smoothing;
    return std::make_shared<SoftmaxCrossEntropy>(options);
  }
  return node.op;
}

Graph GraphFile::build(const ModelOptions& o) const {
  Graph graph(model_, Precision::float32, state_);
  for (const Input& input : inputs_) {
    std::vector<int64_t> shape = {o.microbatch};
    DType dtype = input.dtype;
    if (input.labels && input.shape.size() <= (input.dtype == DType::f32)) {  // of a sample, not of its parts
      if (o.soft_labels) shape.push_back(classes_);
      dtype = o.soft_labels ? DType::f32 : DType::i32;
    } else {
      shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    }
    graph.add(
        input.name,
        std::make_shared<antichain::Input>(TensorSpec{.shape = Shape(shape), .dtype = dtype}, input.target),
        {});
  }
  for (const FileNode& node : nodes_) {
    const std::string prefix = fmt::format("model '{}', node '{}': ", model_, node.name);
    try {
      const NodeId id = graph.add(node.name, op_of(node, o), node.inputs);
      for (const ParamSpec& param : graph[id].signature.params) param.shape.elements();
      if (graph.shape(id).elements() / o.microbatch > most_elements_of_sample)
        throw Error(fmt::format("its output of {} is too large", graph.shape(id).str()));
    } catch (const Error& error) {
      const std::string what = error.what();
      fail(node, what.starts_with(prefix) ? what.substr(prefix.size()) : what, "");
    }
  }
  return graph;
}

void GraphFile::check_form(const ModelOptions& o) const {
  const auto refuse = [&](const std::string& given, const std::string& has) {
    throw Error(fmt::format("{} is asked for, but the network of {} {}", given, origin_, has),
                "give data that fits, or write the graph again for this data", ExitCode::usage);
  };
  if (o.form != Form::cifar)
    throw Error(fmt::format("the network of {} has one form only", origin_), "leave out --form",
                ExitCode::usage);
  if (o.classes != 0 && o.classes != classes_)
    refuse(fmt::format("a network for {} classes", o.classes), fmt::format("has {}", classes_));
  if (o.vocabulary != 0 && o.vocabulary != classes_)
    refuse(fmt::format("a vocabulary of {} tokens", o.vocabulary), fmt::format("has {}", classes_));
  for (const Input& input : inputs_)
    if (o.sequence != 0 && input.dtype == DType::i32 && input.shape != std::vector<int64_t>{o.sequence})
      refuse(fmt::format("a network for sequences of {}", o.sequence),
             fmt::format("takes '{}' of {}", input.name, fmt::join(input.shape, " x ")));
  for (const Input& input : inputs_) {
    if (input.labels || o.image == 0) continue;
    if (input.shape != std::vector<int64_t>{usual_.channels, o.image, o.image})
      refuse(fmt::format("a network for images of {0} x {1} x {1}", usual_.channels, o.image),
             fmt::format("takes '{}' of {}", input.name, fmt::join(input.shape, " x ")));
  }
  if (o.dropout && *o.dropout > 0 && usual_.dropout == 0) refuse("dropout", "has none");
  if (o.stochastic_depth && *o.stochastic_depth > 0 && usual_.stochastic_depth == 0)
    refuse("stochastic depth", "has none");
}

std::string GraphFile::where(std::string_view node) const {
  const auto found = std::ranges::find(nodes_, node, &FileNode::name);
  return found == nodes_.end() ? "" : found->where;
}

Graph GraphFile::graph(const ModelOptions& options) const {
  check_form(options);
  return build(options);
}

}  // namespace antichain
