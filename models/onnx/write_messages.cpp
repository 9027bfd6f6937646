// Writes the messages of an ONNX file by the numbers that onnx.proto gives their fields.
#include "models/onnx/messages.h"
#include "models/onnx/wire.h"

namespace antichain::onnx {
namespace {

WireWriter written_tensor(const Tensor& t) {
  WireWriter w;
  for (const int64_t dim : t.dims) w.integer(1, dim);
  w.integer(2, t.type);
  w.bytes(8, t.name);
  w.bytes(9, t.raw);
  return w;
}

WireWriter written_attribute(const Attribute& a) {
  WireWriter w;
  w.bytes(1, a.name);
  switch (a.type) {
    case type_real:
      w.real(2, a.real);
      break;
    case type_integer:
      w.integer(3, a.integer);
      break;
    case type_text:
      w.bytes(4, a.text);
      break;
    default:
      for (const int64_t i : a.integers) w.integer(8, i);
  }
  w.integer(20, a.type);
  return w;
}

WireWriter written_node(const Node& node) {
  WireWriter w;
  for (const std::string& input : node.inputs) w.bytes(1, input);
  for (const std::string& output : node.outputs) w.bytes(2, output);
  w.bytes(3, node.name);
  w.bytes(4, node.op);
  if (!node.domain.empty()) w.bytes(7, node.domain);
  for (const Attribute& a : node.attributes) w.message(5, written_attribute(a));
  return w;
}

WireWriter written_value_info(const ValueInfo& info) {
  WireWriter shape;
  for (size_t i = 0; i < info.dims.size(); ++i) {
    WireWriter dim;
    if (info.dims[i] >= 0)
      dim.integer(1, info.dims[i]);
    else
      dim.bytes(2, info.params[i]);
    shape.message(1, dim);
  }
  WireWriter tensor, type, w;
  tensor.integer(1, info.type);
  tensor.message(2, shape);
  type.message(1, tensor);
  w.bytes(1, info.name);
  w.message(2, type);
  return w;
}

WireWriter written_graph(const FileGraph& graph) {
  WireWriter w;
  for (const Node& node : graph.nodes) w.message(1, written_node(node));
  w.bytes(2, graph.name);
  for (const Tensor& t : graph.initializers) w.message(5, written_tensor(t));
  for (const ValueInfo& info : graph.inputs) w.message(11, written_value_info(info));
  for (const ValueInfo& info : graph.outputs) w.message(12, written_value_info(info));
  return w;
}

}  // namespace

std::string serialise(const Model& model) {
  WireWriter w;
  w.integer(1, model.ir_version);
  w.bytes(2, model.producer);
  w.bytes(3, model.producer_version);
  w.message(7, written_graph(model.graph));
  for (const Opset& opset : model.opsets) {
    WireWriter of;
    of.bytes(1, opset.domain);
    of.integer(2, opset.version);
    w.message(8, of);
  }
  return w.written();
}

}  // namespace antichain::onnx
