// Matmul is oneDNN's product of two matrices, one after the other.
#include "layers/matmul.h"

#include "framework/error.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

void multiply_each(Context&, const MatrixProduct& p, const Tensor& first, const Tensor& second,
                   const Tensor& to) {
  for (int64_t i = 0; i < p.count; ++i) {
    const auto status = dnnl::sgemm(
        p.first_is_transposed ? 'T' : 'N', p.second_is_transposed ? 'T' : 'N', p.rows, p.columns, p.inner, 1,
        first.data<float>() + i * p.rows * p.inner, p.first_is_transposed ? p.rows : p.inner,
        second.data<float>() + i * p.inner * p.columns, p.second_is_transposed ? p.inner : p.columns, 0,
        to.data<float>() + i * p.rows * p.columns, p.columns);
    ANTICHAIN_CHECK(status == dnnl::status::success, "oneDNN multiplies two matrices");
  }
}

}  // namespace

KernelEntry matmul_entry() { return matmul_entry_of(multiply_each); }

}  // namespace antichain::cpu
