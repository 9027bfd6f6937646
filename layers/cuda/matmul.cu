// Matmul is one launch a product: each block computes a tile of one matrix.
#include "layers/matmul.h"

#include <algorithm>

#include "framework/cuda/product.h"
#include "layers/cuda/operators.h"

namespace antichain::cuda {
namespace {

void multiply_each(Context& context, const MatrixProduct& p, const Tensor& first, const Tensor& second,
                   const Tensor& to) {
  auto* y = to.data<float>();
  index_of(std::max({first.elements(), second.elements(), to.elements()}));
  multiply(stream_of(context),
           {.a = first.data<float>(),
            .b = second.data<float>(),
            .rows = index_of(p.rows),
            .inner = index_of(p.inner),
            .columns = index_of(p.columns),
            .b_is_transposed = p.second_is_transposed,
            .a_is_transposed = p.first_is_transposed,
            .count = index_of(p.count)},
           [=] ANTICHAIN_DEVICE(Index i, float sum) { y[i] = sum; });
}

}  // namespace

KernelEntry matmul_entry() { return matmul_entry_of(multiply_each); }

}  // namespace antichain::cuda
