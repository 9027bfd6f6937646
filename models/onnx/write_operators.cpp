// The table says which of ONNX's operators our operators become, with one row an operator.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numbers>

#include "layers/layers.h"
#include "models/onnx/window_means.h"
#include "models/onnx/writing.h"

namespace antichain::onnx {
namespace {

std::vector<int64_t> both(Extent e) { return {e.h, e.w}; }
std::vector<int64_t> four(Padding p) { return {p.before.h, p.before.w, p.after.h, p.after.w}; }

// Adds a convolution, transposed or not, with the attributes that both have.
template <class Options>
Node& convolution(Writing& w, const char* op, const std::string& weight, const Options& o) {
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
    inputs.push_back(w.numbers(std::vector<float>(size_t(row.elements()), 1.0f), {row.begin(), row.end()}));
  }
  const auto norm = [&](Node& node) -> Node& {
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
      w.helper("InstanceNormalization", {groups, w.numbers(ones, {o.groups}), w.numbers(zeros, {o.groups})})
          .set("epsilon", o.eps));
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
  Node& node = w.last(average ? "AveragePool" : "MaxPool", {w.input()})
                   .set("kernel_shape", both(op.options.kernel))
                   .set("strides", both(op.options.stride))
                   .set("pads", four(op.options.pad))
                   .set("ceil_mode", int64_t(op.options.ceil_mode));
  if (average) node.set("count_include_pad", int64_t(op.options.count_include_pad));
}

void write_adaptive_pool(Writing& w, Extent out) {
  const Shape& x = w.shape();
  if (x[2] % out.h != 0 || x[3] % out.w != 0) {
    const std::string columns = w.numbers(means_of_columns(x[3], out.w), {x[3], out.w});
    const std::string narrow = w.done(w.helper("MatMul", {w.input(), columns}));
    w.last("MatMul", {w.numbers(means_of_rows(x[2], out.h), {out.h, x[2]}), narrow});
    return;
  }
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
  Node& node = w.last("Resize", {w.input(), "", w.numbers(scales, {4})});
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

}  // namespace

void write_node(Writing& w) {
  const Op& op = *w.node().op;
  const auto writer = writers().find(op.type());
  if (writer == writers().end()) w.refuse(fmt::format("operator for our '{}'", op.type()));
  writer->second(w, op);
}

}  // namespace antichain::onnx
