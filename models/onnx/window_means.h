// ONNX has no adaptive pool. Where the windows have one size it is an AveragePool. Elsewhere it is written as
// two products, which average over the columns of each window and then over its rows:
//
//   y = MatMul(R, MatMul(x, C))      R  out.h x H      C  W x out.w
//
// Reading knows these two products again.
#pragma once

#include "framework/files/weights.h"

namespace antichain::onnx {

// Return R and C for one side of the image, in row-major order: the element of output i and pixel p is
// 1 / (size of window i) where p is in that window, else 0 (AdaptiveWindow).
std::vector<float> means_of_rows(int64_t in, int64_t out);
std::vector<float> means_of_columns(int64_t in, int64_t out);

// Say whether a constant is R, or C, of its shape.
bool averages_rows(const NamedTensor&);
bool averages_columns(const NamedTensor&);

}  // namespace antichain::onnx
