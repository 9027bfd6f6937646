// Matmul multiplies the matrices of two tensors, sample by sample: torch.matmul and torch.bmm of tensors that
// are computed, as in attention.
//
//   a  N x … x I x K (transpose_a: K x I)     b  N x … x K x J (transpose_b: J x K), equal in the axes before
//   y  N x … x I x J     y = a · b
//   da = dy · bᵀ, db = aᵀ · dy, each in the order in which its factor is stored
//
// It computes in float32 in every precision.
#pragma once

#include "framework/backend.h"
#include "framework/graph.h"

namespace antichain {

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
};
template <class Visit>
void fields(MatmulOptions& o, Visit&& visit) {
  visit("transpose_a", o.transpose_a);
  visit("transpose_b", o.transpose_b);
}

class Matmul : public Op {
 public:
  explicit Matmul(MatmulOptions o) : options(o) {}
  std::string_view type() const override { return "matmul"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const MatmulOptions options;
};

// A MatrixProduct is one of the three products of a node, `count` times: rows x columns, each a sum of
// `inner` terms. A factor that is transposed is stored the other way round.
struct MatrixProduct {
  int64_t count, rows, inner, columns;
  bool first_is_transposed, second_is_transposed;
};
// Writes the products of the matrices of two tensors one behind the other.
using MultiplyEach = void (*)(Context&, const MatrixProduct&, const Tensor& first, const Tensor& second,
                              const Tensor& to);
// Returns the entry of an engine that multiplies by this function.
KernelEntry matmul_entry_of(MultiplyEach);

NodeId matmul(Graph&, std::string name, NodeId a, NodeId b, MatmulOptions = {});

}  // namespace antichain
