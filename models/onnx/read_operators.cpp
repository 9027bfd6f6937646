// The table says how each operator of ONNX becomes nodes, with one row an operator (rows/).
// docs/bring-your-model.md lists them.
#include <fmt/format.h>

#include <map>

#include "models/onnx/rows/rows.h"

namespace antichain::onnx {
namespace {

using Row = void (*)(Translation&);

const std::map<std::string, Row>& rows_of_onnx() {
  using enum ActivationFunction;
  static const std::map<std::string, Row> table = {
      {"Add", row::add},
      {"AveragePool", row::average_pool},
      {"BatchNormalization", row::batch_norm},
      {"Cast", row::cast},
      {"Clip", row::clip},
      {"Concat", row::concat},
      {"Conv", row::conv},
      {"ConvTranspose", row::conv_transpose},
      {"Div", row::divide},
      {"Dropout", row::dropout},
      {"Flatten", row::flatten},
      {"Gather", row::gather},
      {"Gelu", row::gelu},
      {"Gemm", row::gemm},
      {"GlobalAveragePool", row::global_average_pool},
      {"GroupNormalization", row::group_norm},
      {"HardSigmoid", row::hardsigmoid},
      {"HardSwish", [](Translation& t) { row::activate(t, hardswish); }},
      {"Identity", row::identity},
      {"InstanceNormalization", row::instance_norm},
      {"LayerNormalization", row::layer_norm},
      {"MatMul", row::matmul},
      {"MaxPool", row::max_pool},
      {"Mul", row::multiply},
      {"Pad", row::pad},
      {"ReduceMean", row::reduce_mean},
      {"Relu", row::relu},
      {"Reshape", row::reshape},
      {"Resize", row::resize},
      {"Shape", row::shape},
      {"Sigmoid", [](Translation& t) { row::activate(t, sigmoid); }},
      {"Slice", row::slice},
      {"Softmax", row::softmax},
      {"Split", row::split},
      {"Squeeze", row::squeeze},
      {"Sub", row::subtract},
      {"Sum", row::add},
      {"Swish", [](Translation& t) { row::activate(t, silu); }},
      {"Transpose", row::transpose},
      {"Unsqueeze", row::unsqueeze},
  };
  return table;
}

}  // namespace

void translate_node(Translation& t) {
  const auto row = rows_of_onnx().find(t.node().op);
  if (row == rows_of_onnx().end() || (!t.node().domain.empty() && t.node().domain != "ai.onnx"))
    throw Unsupported{
        fmt::format("'{}{}{}'", t.node().domain, t.node().domain.empty() ? "" : ".", t.node().op)};
  row->second(t);
}

std::vector<std::string> supported_operators() {
  std::vector<std::string> names;
  for (const auto& [name, row] : rows_of_onnx()) names.push_back(name);
  return names;
}

}  // namespace antichain::onnx
