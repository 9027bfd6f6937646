// Runs the average of weights (framework/averaged.h) over one parameter.
#include "framework/averaged.h"
#include "layers/cpu/updates.h"

namespace antichain::cpu {

void ema(Context&, const Optimiser& optimiser, const Rate&, const Trained& t) {
  const auto share = float(1 - static_cast<const Average&>(optimiser).decay);
  const int64_t n = t.w.elements();
  const float* const w = t.w.data<float>();
  float* const e = t.slots[0].data<float>();
#pragma omp parallel for simd schedule(static) if (parallel : n > parallel_elements)
  for (int64_t i = 0; i < n; ++i) e[i] += share * (w[i] - e[i]);
}

}  // namespace antichain::cpu
