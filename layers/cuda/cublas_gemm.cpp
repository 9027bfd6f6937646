// Multiplies matrices by cuBLASLt. Its heuristic depends on shapes, architecture and version only. Of its
// ways to split a sum, we take those that add up parts in a workspace, in an order that does not depend on
// timing.
#include <cublasLt.h>
#include <fmt/format.h>

#include "framework/cuda/check.h"
#include "framework/cuda/resources.h"
#include "framework/cuda/switches.h"
#include "framework/error.h"
#include "layers/cuda/gemm.h"
#include "layers/cuda/lent.h"
#include "layers/cuda/made_once.h"

namespace antichain::cuda {
namespace {

constexpr int64_t most_workspace = 32 << 20;  // NVIDIA's recommendation for Hopper

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(fmt::format("cuBLASLt can't {}: {}", what, cublasLtGetStatusName(status)),
                "use --device cpu");
}

cublasLtHandle_t make_handle() {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "start");
  return handle;
}

// A handle belongs to the current device at the time it is made. Each thread has its own, and none is ever
// destroyed, because CUDA may end first.
cublasLtHandle_t planning_handle() {
  int device = 0;
  ANTICHAIN_CUDA(cudaGetDevice(&device));
  return lent_to_this_thread<MadeOnce<int, cublasLtHandle_t>>().of(device, make_handle);
}

template <class T, cublasStatus_t (*destroy)(T)>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, decltype([](T t) { destroy(t); })>;
using Product = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Matrix = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

Matrix matrix(DType dtype, int64_t rows, int64_t columns) {
  const cudaDataType_t type = dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
  cublasLtMatrixLayout_t m = nullptr;
  check(cublasLtMatrixLayoutCreate(&m, type, uint64_t(rows), uint64_t(columns), rows), "describe a matrix");
  return Matrix(m);
}

// A row-major matrix is its transpose in cuBLAS's column-major order: cᵀ (n x m) = op(b)ᵀ · op(a)ᵀ, so b
// comes first.
class CublasGemm : public Gemm {
 public:
  CublasGemm(const GemmShape& s, Factors factors) : beta_(s.adds ? 1.0f : 0.0f) {
    const cublasOperation_t first = s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    b_ = s.transpose_b ? matrix(s.factors, s.k, s.n) : matrix(s.factors, s.n, s.k);
    a_ = s.transpose_a ? matrix(s.factors, s.m, s.k) : matrix(s.factors, s.k, s.m);
    c_ = matrix(s.product, s.n, s.m);
    const bool rounds = s.factors == DType::f32 && factors == Factors::tf32;
    cublasLtMatmulDesc_t product = nullptr;
    check(cublasLtMatmulDescCreate(&product, rounds ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F),
          "describe a product");
    product_ = Product(product);
    check(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
          "transpose");
    check(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
          "transpose");
    choose();
  }

  int64_t workspace_bytes() const override { return int64_t(chosen_.workspaceSize); }

  void run(Context& context, const void* a, const void* b, void* c, std::byte* workspace) const override {
    const float one = 1;
    check(cublasLtMatmul(handle_of(context), product_.get(), &one, b, b_.get(), a, a_.get(), &beta_, c,
                         c_.get(), c, c_.get(), &chosen_.algo, workspace, chosen_.workspaceSize,
                         stream_of(context)),
          "multiply two matrices");
  }

 private:
  void choose() {
    cublasLtMatmulPreference_t raw = nullptr;
    check(cublasLtMatmulPreferenceCreate(&raw), "create a preference");
    const Preference preference(raw);
    const uint64_t bytes = uint64_t(most_workspace);
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const void* value, size_t size) {
      check(cublasLtMatmulPreferenceSetAttribute(raw, what, value, size), "state a preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof sums);
    const uint32_t aligned = 16;  // tensors of an arena begin at multiples of 64 bytes
    for (const auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(operand, &aligned, sizeof aligned);
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(planning_handle(), product_.get(), b_.get(), a_.get(), c_.get(),
                                         c_.get(), raw, 1, &chosen_, &found),
          "choose an algorithm");
    ANTICHAIN_CHECK(found > 0 && chosen_.state == CUBLAS_STATUS_SUCCESS,
                    "cuBLASLt multiplies float32 and bf16 matrices of any shape");
    cudaGetLastError();  // what choosing may have left behind
  }

  static cublasLtHandle_t handle_of(Context& context) {
    Resources& own = resources(context);
    if (!own.cublas)
      own.cublas = {make_handle(), [](void* h) { cublasLtDestroy(static_cast<cublasLtHandle_t>(h)); }};
    return static_cast<cublasLtHandle_t>(own.cublas.get());
  }

  const float beta_;
  Product product_;
  Matrix a_, b_, c_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace

std::unique_ptr<const Gemm> make_gemm(const GemmShape& shape, Factors factors) {
  if (by_loops(Library::cublas)) return make_direct_gemm(shape);
  return std::make_unique<CublasGemm>(shape, factors);
}

}  // namespace antichain::cuda
