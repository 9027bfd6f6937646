#include "layers/cuda/bias.h"

#include "layers/cuda/move.h"

namespace antichain::cuda {

template <class T, class U>
void add_bias(Stream stream, int64_t elements, int64_t channels, const T* x, const float* bias, U* y) {
  const Index c = index_of(channels);
  for_each(stream, elements, [=] ANTICHAIN_DEVICE(Index i) { y[i] = U(float(x[i]) + bias[i % c]); });
}

void accumulate(Stream stream, int64_t elements, const float* fresh, float* dw) {
  move_elements(stream, elements, fresh, dw, Into::accumulate);
}

template <class T>
void sum_bias(Stream stream, const Runs& runs, const T* dy, double* partials, float* db, bool adds) {
  bias_gradient(stream, runs, dy, partials, db, adds);
}

template void add_bias(Stream, int64_t, int64_t, const float*, const float*, float*);
template void add_bias(Stream, int64_t, int64_t, const float*, const float*, Bf16*);
template void add_bias(Stream, int64_t, int64_t, const Bf16*, const float*, Bf16*);
template void sum_bias(Stream, const Runs&, const float*, double*, float*, bool);
template void sum_bias(Stream, const Runs&, const Bf16*, double*, float*, bool);

}  // namespace antichain::cuda
