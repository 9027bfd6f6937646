// A Gemm is a matrix product planned once: c (m x n) ← op(a) · op(b), or c + that; all row-major, without
// gaps. Sums are float32, whatever the types.
#pragma once

#include <cstdint>
#include <memory>

#include "layers/cuda/operators.h"

namespace antichain::cuda {

struct GemmShape {
  int64_t m, n, k;
  bool transpose_a = false;    // a is stored k x m, else m x k
  bool transpose_b = false;    // b is stored n x k, else k x n
  bool adds = false;           // to c
  DType factors = DType::f32;  // of a and b: f32 or bf16
  DType product = DType::f32;  // of c; bf16 only where they are
};

class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual int64_t workspace_bytes() const = 0;
  virtual void run(Context&, const void* a, const void* b, void* c, std::byte* workspace) const = 0;
};

// `Factors` apply to float32 factors. Equal shapes on equal devices and library versions give equal bits.
std::unique_ptr<const Gemm> make_gemm(const GemmShape&, Factors);
// Makes a product computed by our own loop, for every shape; slow.
std::unique_ptr<const Gemm> make_direct_gemm(const GemmShape&);

}  // namespace antichain::cuda
