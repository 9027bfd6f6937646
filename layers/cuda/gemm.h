// A matrix product planned once: c (m x n) ← op(a) · op(b), or c + that; all row-major float32, without gaps.
#pragma once

#include <cstdint>
#include <memory>

#include "layers/cuda/operators.h"

namespace antichain::cuda {

struct GemmShape {
  int64_t m, n, k;
  bool transpose_a = false;  // a is stored k x m, else m x k
  bool transpose_b = false;  // b is stored n x k, else k x n
  bool adds = false;         // to c
};

class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(Context&, const float* a, const float* b, float* c, std::byte* workspace) const = 0;
};

// Equal shapes on equal devices and library versions give equal bits.
std::unique_ptr<const Gemm> make_gemm(const GemmShape&, Factors);

}  // namespace antichain::cuda
