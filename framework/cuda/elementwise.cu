#include "framework/cuda/elementwise.h"

#include <cmath>

#include "framework/cuda/launch.h"

namespace antichain::cuda {

void add(Stream stream, const float* x, float* y, int64_t count) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) { y[i] += x[i]; });
}

void add(Stream stream, const Bf16* x, Bf16* y, int64_t count) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) { y[i] = Bf16(float(y[i]) + float(x[i])); });
}

// The same operations in the same order as on the CPU; neither contracts a · b + c.
void sgd(Stream stream, const SgdOptions& options, const Rate& given, float* w, const float* dw, float* v,
         int64_t count) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    const float rate = given.live ? given.live->rate : given.value;
    const float g = dw[i] + options.weight_decay * w[i];
    float step = g;
    if (v) {
      v[i] = options.momentum * v[i] + g;
      step = options.nesterov ? g + options.momentum * v[i] : v[i];
    }
    w[i] -= rate * step;
  });
}

// Whoever finds one writes the same 1.
void find_non_finite(Stream stream, const float* values, int64_t count, int* found) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    if (!(fabsf(values[i]) <= 3.402823466e38f)) *found = 1;
  });
}

void find_non_finite(Stream stream, const double* values, int64_t count, int* found) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    if (!(fabs(values[i]) <= 1.7976931348623157e308)) *found = 1;
  });
}

void find_non_finite(Stream stream, const Bf16* values, int64_t count, int* found) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    if (!(fabsf(float(values[i])) <= 3.402823466e38f)) *found = 1;
  });
}

}  // namespace antichain::cuda
