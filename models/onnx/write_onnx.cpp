// Writes networks as ONNX, of opset 17: each of our operators is one of ONNX's or a few.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <numbers>

#include "framework/error.h"
#include "layers/layers.h"
#include "models/onnx/messages.h"
#include "models/onnx/onnx_file.h"

namespace antichain {
namespace {

constexpr int64_t written_opset = 17, written_ir_version = 8;
constexpr const char* samples_name = "batch";

// A Writing has the graph that is written, and the node of ours whose operators are added.
class Writing {
 public:
  Writing(const Graph& from, const Weights& weights) : graph(from), weights_(weights) {}

  // Returns what ONNX calls the output of a node. A parameter may have the node's own name.
  std::string output_of(NodeId id) const {
    const Node& node = graph[id];
    if (const auto found = same_.find(id); found != same_.end()) return found->second;
    return weights_.find(node.name) ? node.name + "/output" : node.name;
  }

  void begin(NodeId id) { id_ = id, helpers_ = 0; }
  const Node& node() const { return graph[id_]; }
  const Shape& shape(size_t input = 0) const { return graph.shape(node().inputs[input]); }
  std::string input(size_t i = 0) const { return output_of(node().inputs[i]); }

  // Adds an operator whose output is the node's.
  onnx::Node& last(std::string op, std::vector<std::string> inputs) {
    return add(std::move(op), std::move(inputs), output_of(id_), node().name);
  }
  // Adds an operator in front of that one.
  onnx::Node& helper(std::string op, std::vector<std::string> inputs) {
    const std::string name = fmt::format("{}/{}", node().name, helpers_++);
    return add(std::move(op), std::move(inputs), name, name);
  }
  std::string done(const onnx::Node& helper) const { return helper.outputs[0]; }
  // Makes the node's input stand for its output.
  void leave_out() { same_[id_] = input(); }

  // Returns the name of a parameter or buffer, which becomes an initializer of this shape, if one is given.
  std::string part(const std::string& name, std::vector<int64_t> dims = {}) {
    const std::string full = name.empty() ? node().name : fmt::format("{}.{}", node().name, name);
    const NamedTensor* tensor = weights_.find(full);
    ANTICHAIN_CHECK(tensor && tensor->is_float(), "weights of a network lack one of its parameters");
    into.initializers.push_back({.name = full,
                                 .dims = dims.empty() ? tensor->shape : std::move(dims),
                                 .raw = {static_cast<const char*>(tensor->data()), size_t(tensor->bytes())}});
    return full;
  }
  template <class T>
  std::string constant(const std::vector<T>& values, bool scalar = false) {
    const std::string name = fmt::format("{}/{}", node().name, helpers_++);
    const std::string& bytes =
        owned_.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    into.initializers.push_back(
        {.name = name,
         .dims = scalar ? std::vector<int64_t>{} : std::vector{int64_t(values.size())},
         .type = std::is_same_v<T, float> ? onnx::type_float : onnx::type_int64,
         .raw = bytes});
    return name;
  }
  std::string number(double value) { return constant(std::vector{float(value)}, true); }
  std::string integers(const std::vector<int64_t>& values) { return constant(values); }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(fmt::format("node '{}': ONNX has no {}", node().name, why),
                "save the network as NAME.antichain");
  }

  const Graph& graph;
  onnx::FileGraph into;

 private:
  onnx::Node& add(std::string op, std::vector<std::string> inputs, std::string output, std::string name) {
    into.nodes.push_back({.name = std::move(name),
                          .op = std::move(op),
                          .inputs = std::move(inputs),
                          .outputs = {std::move(output)}});
    return into.nodes.back();
  }

  const Weights& weights_;
  std::map<NodeId, std::string> same_;
  std::deque<std::string> owned_;  // bytes of constants
  NodeId id_ = 0;
  int helpers_ = 0;
};

std::vector<int64_t> both(Extent e) { return {e.h, e.w}; }
std::vector<int64_t> four(Padding p) { return {p.before.h, p.before.w, p.after.h, p.after.w}; }

// Adds a convolution, transposed or not, with the attributes that both have.
template <class Options>
onnx::Node& convolution(Writing& w, const char* op, const std::string& weight, const Options& o) {
  std::vector<std::string> inputs = {w.input(), weight};
  if (o.bias) inputs.push_back(w.part("bias"));
  return w.last(op, inputs)
      .set("kernel_shape", both(o.kernel))
      .set("strides", both(o.stride))
      .set("pads", four(o.pad))
      .set("dilations", both(o.dilation))
      .set("group", int64_t(o.groups));
}

void write_conv(Writing& w, const Conv2dOptions& o) {
  convolution(w, "Conv", w.part("weight", {o.out, w.shape()[1] / o.groups, o.kernel.h, o.kernel.w}), o);
}

void write_conv_transpose(Writing& w, const ConvTranspose2dOptions& o) {
  convolution(w, "ConvTranspose", w.part("weight"), o).set("output_padding", both(o.output_pad));
}

void write_linear(Writing& w, const LinearOptions& o) {
  std::vector<std::string> inputs = {w.input(), w.part("weight")};
  if (o.bias) inputs.push_back(w.part("bias"));
  w.last("Gemm", inputs).set("transB", int64_t(1));
}

void write_batch_norm(Writing& w, const BatchNormOptions& o) {
  std::vector<std::string> inputs = {w.input()};
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) inputs.push_back(w.part(name));
  w.last("BatchNormalization", inputs).set("epsilon", o.eps).set("momentum", 1 - o.momentum);
}

void write_layer_norm(Writing& w, const LayerNorm& op) {
  const LayerNormOptions& o = op.options;
  const Shape row = op.row(w.shape());
  std::string x = w.input();
  if (o.channels) x = w.done(w.helper("Transpose", {x}).set("perm", std::vector<int64_t>{0, 2, 3, 1}));
  std::vector<std::string> inputs = {x};
  if (o.affine) {
    inputs.push_back(w.part("weight"));
    if (o.bias) inputs.push_back(w.part("bias"));
  } else {
    inputs.push_back(w.constant(std::vector<float>(size_t(row.elements()), 1.0f)));
    w.into.initializers.back().dims.assign(row.begin(), row.end());
  }
  const auto norm = [&](onnx::Node& node) -> onnx::Node& {
    return node.set("axis", int64_t(-row.rank())).set("epsilon", o.eps);
  };
  if (!o.channels) {
    norm(w.last("LayerNormalization", inputs));
    return;
  }
  const std::string y = w.done(norm(w.helper("LayerNormalization", inputs)));
  w.last("Transpose", {y}).set("perm", std::vector<int64_t>{0, 3, 1, 2});
}

void write_group_norm(Writing& w, const GroupNormOptions& o) {
  const Shape& shape = w.shape();
  std::vector<int64_t> back(shape.begin(), shape.end()), factors(size_t(shape.rank() - 1), 1);
  back[0] = -1, factors[0] = shape[1];
  const std::vector<float> ones(size_t(o.groups), 1.0f), zeros(size_t(o.groups), 0.0f);
  const std::string groups = w.done(w.helper("Reshape", {w.input(), w.integers({0, o.groups, -1})}));
  const std::string y = w.done(
      w.helper("InstanceNormalization", {groups, w.constant(ones), w.constant(zeros)}).set("epsilon", o.eps));
  if (!o.affine) {
    w.last("Reshape", {y, w.integers(back)});
    return;
  }
  const std::string whole = w.done(w.helper("Reshape", {y, w.integers(back)}));
  const std::string scaled = w.done(w.helper("Mul", {whole, w.part("weight", factors)}));
  w.last("Add", {scaled, w.part("bias", factors)});
}

void write_activation(Writing& w, ActivationFunction f) {
  const std::string x = w.input();
  const auto gelu_of = [&](const std::string& inner) {
    const std::string more = w.done(w.helper("Add", {inner, w.number(1)}));
    const std::string product = w.done(w.helper("Mul", {x, more}));
    w.last("Mul", {product, w.number(0.5)});
  };
  switch (f) {
    case ActivationFunction::relu6:
      w.last("Clip", {x, w.number(0), w.number(6)});
      return;
    case ActivationFunction::sigmoid:
      w.last("Sigmoid", {x});
      return;
    case ActivationFunction::hardswish:
      w.last("HardSwish", {x});
      return;
    case ActivationFunction::hardsigmoid:
      w.last("HardSigmoid", {x}).set("alpha", 1.0f / 6).set("beta", 0.5f);
      return;
    case ActivationFunction::silu:
      w.last("Mul", {x, w.done(w.helper("Sigmoid", {x}))});
      return;
    case ActivationFunction::gelu: {
      const std::string scaled = w.done(w.helper("Div", {x, w.number(std::numbers::sqrt2)}));
      return gelu_of(w.done(w.helper("Erf", {scaled})));
    }
    case ActivationFunction::gelu_tanh: {
      const std::string cube = w.done(w.helper("Pow", {x, w.number(3)}));
      const std::string part = w.done(w.helper("Mul", {cube, w.number(0.044715)}));
      const std::string sum = w.done(w.helper("Add", {x, part}));
      const std::string u = w.done(w.helper("Mul", {sum, w.number(std::sqrt(2 / std::numbers::pi))}));
      return gelu_of(w.done(w.helper("Tanh", {u})));
    }
  }
}

void write_pool(Writing& w, const Pool& op) {
  const bool average = op.kind == Pool::Kind::average;
  onnx::Node& node = w.last(average ? "AveragePool" : "MaxPool", {w.input()})
                         .set("kernel_shape", both(op.options.kernel))
                         .set("strides", both(op.options.stride))
                         .set("pads", four(op.options.pad))
                         .set("ceil_mode", int64_t(op.options.ceil_mode));
  if (average) node.set("count_include_pad", int64_t(op.options.count_include_pad));
}

void write_adaptive_pool(Writing& w, Extent out) {
  const Shape& x = w.shape();
  if (x[2] % out.h != 0 || x[3] % out.w != 0)
    w.refuse(fmt::format("adaptive pool of {} x {} pixels to {} x {}, which do not divide them", x[2], x[3],
                         out.h, out.w));
  const std::vector<int64_t> kernel = {x[2] / out.h, x[3] / out.w};
  w.last("AveragePool", {w.input()}).set("kernel_shape", kernel).set("strides", kernel);
}

void write_slice(Writing& w, const Slice& op) {
  const Slice::Part part = op.part(w.shape()[op.options.axis]);
  const int64_t end = part.begin + (part.count - 1) * op.options.step + 1;
  w.last("Slice", {w.input(), w.integers({part.begin}), w.integers({end}), w.integers({op.options.axis}),
                   w.integers({op.options.step})});
}

void write_interpolate(Writing& w, const InterpolateOptions& o) {
  const Shape& x = w.shape();
  const Shape& y = w.node().signature.y.shape;
  const auto scale = [&](int axis, double given) {
    if (o.scale) return float(given);
    float s = float(y[axis]) / float(x[axis]);
    while (int64_t(float(x[axis]) * s) < y[axis]) s = std::nextafter(s, 1e30f);
    return s;
  };
  const std::vector<float> scales = {1, 1, scale(2, o.scale ? o.scale->h : 0),
                                     scale(3, o.scale ? o.scale->w : 0)};
  const bool bilinear = o.mode == Interpolation::bilinear;
  onnx::Node& node = w.last("Resize", {w.input(), "", w.constant(scales)});
  node.set("mode", std::string_view(bilinear ? "linear" : "nearest"));
  node.set("coordinate_transformation_mode", std::string_view(!bilinear         ? "asymmetric"
                                                              : o.align_corners ? "align_corners"
                                                                                : "half_pixel"));
  if (!bilinear) node.set("nearest_mode", std::string_view("floor"));
}

template <class T>
std::vector<int64_t> wide(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

template <class Of>
const Of& op_as(const Op& op) {
  return dynamic_cast<const Of&>(op);
}

using WriteNode = void (*)(Writing&, const Op&);
const std::map<std::string_view, WriteNode>& writers() {
  using W = Writing&;
  using O = const Op&;
  static const std::map<std::string_view, WriteNode> table = {
      {"activate", [](W w, O op) { write_activation(w, op_as<Activate>(op).function); }},
      {"adaptive_average_pool",
       [](W w, O op) { write_adaptive_pool(w, op_as<AdaptiveAveragePool>(op).out); }},
      {"add",
       [](W w, O) {
         w.last("Add", {w.input(0), w.input(1)});
       }},
      {"average_pool", [](W w, O op) { write_pool(w, op_as<Pool>(op)); }},
      {"batch_norm", [](W w, O op) { write_batch_norm(w, op_as<BatchNorm>(op).options); }},
      {"concat",
       [](W w, O) {
         std::vector<std::string> inputs;
         for (size_t i = 0; i < w.node().inputs.size(); ++i) inputs.push_back(w.input(i));
         w.last("Concat", inputs).set("axis", int64_t(1));
       }},
      {"conv2d", [](W w, O op) { write_conv(w, op_as<Conv2d>(op).options); }},
      {"conv_transpose2d", [](W w, O op) { write_conv_transpose(w, op_as<ConvTranspose2d>(op).options); }},
      {"dropout", [](W w, O) { w.leave_out(); }},
      {"flatten", [](W w, O) { w.last("Flatten", {w.input()}).set("axis", int64_t(1)); }},
      {"global_average_pool", [](W w, O) { w.last("GlobalAveragePool", {w.input()}); }},
      {"group_norm", [](W w, O op) { write_group_norm(w, op_as<GroupNorm>(op).options); }},
      {"interpolate", [](W w, O op) { write_interpolate(w, op_as<Interpolate>(op).options); }},
      {"layer_norm", [](W w, O op) { write_layer_norm(w, op_as<LayerNorm>(op)); }},
      {"layer_scale",
       [](W w, O) {
         w.last("Mul", {w.input(), w.part("")});
       }},
      {"linear", [](W w, O op) { write_linear(w, op_as<Linear>(op).options); }},
      {"max_pool", [](W w, O op) { write_pool(w, op_as<Pool>(op)); }},
      {"mean",
       [](W w, O op) {
         const Mean& mean = op_as<Mean>(op);
         w.last("ReduceMean", {w.input()})
             .set("axes", wide(mean.axes))
             .set("keepdims", int64_t(mean.keep_dims));
       }},
      {"multiply",
       [](W w, O) {
         w.last("Mul", {w.input(0), w.input(1)});
       }},
      {"permute",
       [](W w, O op) { w.last("Transpose", {w.input()}).set("perm", wide(op_as<Permute>(op).order)); }},
      {"relu", [](W w, O) { w.last("Relu", {w.input()}); }},
      {"reshape",
       [](W w, O op) {
         std::vector<int64_t> shape = op_as<Reshape>(op).shape;
         shape.insert(shape.begin(), 0);  // as many samples as there are
         w.last("Reshape", {w.input(), w.integers(shape)});
       }},
      {"slice", [](W w, O op) { write_slice(w, op_as<Slice>(op)); }},
      {"softmax", [](W w, O) { w.last("Softmax", {w.input()}).set("axis", int64_t(1)); }},
      {"stochastic_depth", [](W w, O) { w.leave_out(); }},
  };
  return table;
}

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
  Writing w(graph, weights);
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
    const auto writer = writers().find(node.op->type());
    if (writer == writers().end()) w.refuse(fmt::format("operator for our '{}'", node.op->type()));
    writer->second(w, *node.op);
  }
  w.into.name = graph.model();
  w.into.outputs.push_back(value_info(w.output_of(logits), graph.shape(logits)));
  onnx::Model model{.ir_version = written_ir_version, .producer = made_by, .opsets = {{"", written_opset}}};
  model.graph = std::move(w.into);
  return onnx::serialise(model);
}

}  // namespace antichain
