// An Epilogue follows the product of a convolution or a linear layer: a bias per channel, ReLU, both or
// nothing.
//
//   forward    y ← relu(product + bias) in one pass over memory
//   backward   dproduct ← dy where y > 0, and db ← Σ of it, in one pass as well; without ReLU dproduct is dy
//              itself
//
// In bf16 the sum is rounded when it is stored, whatever the product had been rounded to before.
#pragma once

#include "framework/bf16.h"
#include "framework/op.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"

namespace antichain::cuda {

class Epilogue {
 public:
  Epilogue(bool bias, bool relu, const Shape& y, DType dtype);

  bool empty() const { return !bias_ && !relu_; }
  bool keeps_y() const { return relu_; }

  // `product` is float32 or of y's type, and may be y itself.
  void forward(Context&, const void* product, DType, const Forward&) const;
  // Takes backward_bytes() of the scratch. The result is valid as long as the scratch.
  int64_t backward_bytes() const;
  const std::byte* backward(Context&, Scratch&, const Backward&) const;

 private:
  const bool bias_, relu_;
  const DType dtype_;  // of y
  const PixelParts parts_;
};

// Computes dw += fresh.
void accumulate(Stream, int64_t elements, const float* fresh, float* dw);

}  // namespace antichain::cuda
