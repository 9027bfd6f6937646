#include "models/onnx/onnx_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "layers/input.h"
#include "layers/softmax_cross_entropy.h"
#include "models/onnx/simplify.h"
#include "models/onnx/translation.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using onnx::Translation;
using onnx::Value;

int64_t opset_of(const onnx::Model& model, const std::string& origin) {
  for (const onnx::Opset& opset : model.opsets)
    if (opset.domain.empty() || opset.domain == "ai.onnx") {
      if (opset.version < oldest_opset || opset.version > newest_opset)
        throw Error(fmt::format("{} is of opset {}", origin, opset.version),
                    fmt::format("export it with an opset of {} to {}", oldest_opset, newest_opset));
      return opset.version;
    }
  throw Error(fmt::format("{} does not say its opset", origin), "the file is damaged");
}

// A softmax at the end is a part of the loss that is added.
void cut_softmax(onnx::FileGraph& graph) {
  graph.outputs.resize(1);
  for (const onnx::Node& node : graph.nodes)
    if ((node.op == "Softmax" || node.op == "LogSoftmax") && node.outputs.size() == 1 &&
        node.inputs.size() == 1 && node.outputs[0] == graph.outputs[0].name) {
      const std::string logits = node.inputs[0];
      graph.outputs[0].name = logits;
      return;
    }
}

void add_input(Translation& t, const onnx::ValueInfo& info) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw Error(fmt::format("{}: the input '{}' {}", t.constants.origin(), info.name.substr(0, 256), why),
                hint);
  };
  if (info.type != onnx::type_float) refuse("is no float32 tensor", "networks compute with float32");
  if (info.dims.size() < 2 || info.dims.size() > size_t(Shape::max_rank))
    refuse(fmt::format("has {} axes", info.dims.size()), "samples are the first of 2 to 5");
  std::vector<int64_t> shape = {Translation::samples};
  for (size_t i = 1; i < info.dims.size(); ++i) {
    if (info.dims[i] < 1 || info.dims[i] > 1 << 20)
      refuse(fmt::format("has no fixed extent of axis {}", i), "export it with all but the samples fixed");
    shape.push_back(info.dims[i]);
  }
  if (info.dims[0] > 0) t.file_samples = info.dims[0];
  const std::string name = t.unique(info.name);
  const NodeId id = t.graph.add(name, std::make_shared<Input>(TensorSpec{.shape = Shape(shape)}), {});
  t.enter(info.name, {id, onnx::natural(int(shape.size()))});
}

// Translates the node that was begun.
void add_node(Translation& t) {
  try {
    if (std::optional<NamedTensor> value = t.constants.fold(t.node()))
      t.give(0, std::move(*value));
    else
      onnx::translate_node(t);
  } catch (const Error& error) {
    const std::string what = error.what();
    if (what.starts_with(t.constants.origin())) throw;  // it says where
    throw onnx::Unsupported{fmt::format("'{}' with these shapes and options ({})", t.node().op, what)};
  }
}

void add_nodes(Translation& t, const onnx::Model& model) {
  for (const onnx::Node& node : model.graph.nodes) {
    t.begin(node);
    try {
      add_node(t);
    } catch (const onnx::Unsupported& problem) {
      throw Error(fmt::format("{}: {} at node '{}' is not supported", t.constants.origin(), problem.what,
                              (node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name)
                                  .substr(0, most_graph_name_bytes)),
                  fmt::format("the operators are {}", fmt::join(onnx::supported_operators(), ", ")));
    }
  }
}

void add_loss_of(Translation& t, const std::string& output) {
  const onnx::Node end{.name = "output", .op = "output", .inputs = {output}};
  t.begin(end);
  try {
    const Value logits = t.input();
    if (t.rank(logits) != 2)
      throw onnx::Unsupported{fmt::format("an output of {} axes (it is N x classes)", t.rank(logits))};
    const NodeId last = t.plain(logits).node;
    const NodeId labels = t.graph.add(
        t.unique("labels"),
        std::make_shared<Input>(TensorSpec{.shape = {Translation::samples}, .dtype = DType::i32}), {});
    softmax_cross_entropy(t.graph, t.unique("loss"), last, labels);
  } catch (const onnx::Unsupported& problem) {
    throw Error(fmt::format("{}: {} is not supported", t.constants.origin(), problem.what), "");
  }
}

// Returns the name of the file without its ending, in letters that names of models have.
std::string model_name_of(const std::string& path) {
  std::string name = fs::path(path).stem().string();
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
      c = '_';
  if (name.empty() || name[0] == '-' || name[0] == '.') name = "onnx" + name;
  return name.substr(0, 64);
}

std::string printable_word(std::string text) {
  std::erase_if(text, [](char c) { return c < ' ' || c == 0x7f; });
  return text.substr(0, 64);
}

OnnxNetwork translated(onnx::Model& model, size_t bytes, const std::string& origin, const std::string& name) {
  const int64_t opset = opset_of(model, origin);
  if (model.graph.outputs.empty())
    throw Error(fmt::format("{} has no output", origin), "a network's first output is N x classes");
  onnx::Constants constants(model, origin, bytes);
  cut_softmax(model.graph);
  onnx::simplify(model, constants);
  Translation t(name, constants);
  t.opset = opset;
  try {
    for (const onnx::ValueInfo& input : model.graph.inputs)
      if (!constants.has(input.name)) add_input(t, input);
  } catch (const onnx::Unsupported& problem) {
    throw Error(fmt::format("{}: {} is not supported", origin, problem.what), "");
  }
  add_nodes(t, model);
  add_loss_of(t, model.graph.outputs[0].name);
  const std::string made_by = fmt::format("{} {} (ONNX, opset {})", printable_word(model.producer),
                                          printable_word(model.producer_version), opset);
  return {GraphFile(to_graph_json(t.graph, made_by), origin), std::move(t.weights)};
}

// Reads the tensors that lie in files beside the ONNX file. The bytes must live as long as the model.
size_t read_external(onnx::Model& model, const std::string& path, std::map<std::string, std::string>& files) {
  size_t bytes = 0;
  for (onnx::Tensor& tensor : model.graph.initializers) {
    if (!tensor.external) continue;
    const fs::path location(tensor.location);
    if (location.empty() || location != location.filename() || tensor.location == "..")
      throw Error(fmt::format("{}: the numbers of '{}' lie in '{}'", path, tensor.name.substr(0, 256),
                              tensor.location.substr(0, 256)),
                  "external data are read from files in the same folder only");
    std::string& file = files[tensor.location];
    if (file.empty()) {
      file = read_bounded((fs::path(path).parent_path() / location).string(), most_weights_bytes);
      bytes += file.size();
    }
    const size_t offset = size_t(tensor.offset);
    const size_t length =
        tensor.length < 0 ? file.size() - std::min(offset, file.size()) : size_t(tensor.length);
    if (offset > file.size() || length > file.size() - offset)
      throw Error(
          fmt::format("{}: the numbers of '{}' lie at bytes {} to {} of {}, which has {}", path,
                      tensor.name.substr(0, 256), offset, offset + length, tensor.location, file.size()),
          "the file is truncated or damaged");
    tensor.raw = std::string_view(file).substr(offset, length);
  }
  return bytes;
}

}  // namespace

bool is_onnx_file(const std::string& path) { return path.ends_with(onnx_ending); }

OnnxNetwork read_onnx(const std::string& path) {
  const std::string bytes = read_bounded(path, most_onnx_bytes);
  std::map<std::string, std::string> files;
  onnx::Model model = onnx::parse(bytes, path);
  const size_t beside = read_external(model, path, files);
  return translated(model, bytes.size() + beside, path, model_name_of(path));
}

OnnxNetwork network_of_onnx(const std::string& bytes, const std::string& origin, const std::string& name) {
  onnx::Model model = onnx::parse(bytes, origin);
  for (const onnx::Tensor& tensor : model.graph.initializers)
    if (tensor.external)
      throw Error(
          fmt::format("{}: the numbers of '{}' lie in another file", origin, tensor.name.substr(0, 256)));
  return translated(model, bytes.size(), origin, name);
}

void register_onnx_weights() {
  register_weight_reader(onnx_ending, [](const std::string& file) { return read_onnx(file).weights; });
}

}  // namespace antichain
