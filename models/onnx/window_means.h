// An adaptive pool averages over windows, and ONNX has no operator for it. Where all windows have one size,
// an AveragePool does the same. Every other adaptive pool is written as two matrix products, which average
// over the columns of each window and then over its rows:
//
//   y = MatMul(R, MatMul(x, C))      R  out.h x H      C  W x out.w
//
// The reader recognises these two products (models/onnx/simplify.h).
#pragma once

#include "framework/files/weights.h"

namespace antichain::onnx {

// These return R and C, for one side of the image, in row-major order. The element of output pixel i and
// input pixel p is 1 / (size of window i) where p is in that window (AdaptiveWindow), and 0 elsewhere.
std::vector<float> means_of_rows(int64_t in, int64_t out);
std::vector<float> means_of_columns(int64_t in, int64_t out);

// These say whether a constant is the R, or the C, of its shape.
bool averages_rows(const NamedTensor&);
bool averages_columns(const NamedTensor&);

}  // namespace antichain::onnx
