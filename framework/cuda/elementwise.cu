#include "framework/cuda/elementwise.h"

namespace antichain::cuda {
namespace {

constexpr int threads_per_block = 256;
unsigned blocks(int64_t elements) { return unsigned((elements + threads_per_block - 1) / threads_per_block); }

__global__ void add_kernel(const float* x, float* y, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] += x[i];
}

__global__ void sgd_kernel(SgdOptions sgd, float rate, float* w, const float* dw, float* v, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float g = dw[i] + sgd.weight_decay * w[i];
  v[i] = sgd.momentum * v[i] + g;
  w[i] -= rate * (sgd.nesterov ? g + sgd.momentum * v[i] : v[i]);
}

}  // namespace

cudaError_t add(const float* x, float* y, int64_t count) {
  add_kernel<<<blocks(count), threads_per_block>>>(x, y, count);
  return cudaGetLastError();
}

cudaError_t sgd(const SgdOptions& options, float rate, float* w, const float* dw, float* momentum,
                int64_t count) {
  sgd_kernel<<<blocks(count), threads_per_block>>>(options, rate, w, dw, momentum, count);
  return cudaGetLastError();
}

}  // namespace antichain::cuda
