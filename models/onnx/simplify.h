// Brings the nodes of an ONNX file into a form in which each is one operator: constants are computed, and
// what exporters decompose (a LayerNorm, a GELU, …) becomes the operator that later opsets have for it.
#pragma once

#include "models/onnx/constants.h"

namespace antichain::onnx {

// Rewrites the graph's nodes, and enters constants that they give. A node that nothing uses is left out.
//
// Four operators have a meaning of their own afterwards:
//
// * MatMul may have a third input, which is added.
// * LayerNormalization has the attribute `axes`.
// * GroupNormalization that was recognised has `per_channel` = 1.
// * AveragePool that was recognised is an adaptive pool. Its attributes `input_size` and `output_size` are a
//   height and a width each.
void simplify(Model&, Constants&);

}  // namespace antichain::onnx
