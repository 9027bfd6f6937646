#include "layers/cuda/bias.h"

#include "layers/cuda/move.h"

namespace antichain::cuda {

void add_bias(Stream stream, int64_t elements, int64_t channels, const float* bias, float* y) {
  const Index c = index_of(channels);
  for_each(stream, elements, [=] ANTICHAIN_DEVICE(Index i) { y[i] += bias[i % c]; });
}

void accumulate(Stream stream, int64_t elements, const float* fresh, float* dw) {
  move_elements(stream, elements, fresh, dw, Into::accumulate);
}

void sum_bias(Stream stream, const Runs& runs, const float* dy, double* partials, float* db, bool adds) {
  bias_gradient(stream, runs, dy, partials, db, adds);
}

}  // namespace antichain::cuda
