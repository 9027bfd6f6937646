// Runs AdamW (framework/adamw.h) over one parameter.
#include "framework/adamw.h"

#include <algorithm>
#include <cmath>

#include "layers/cpu/updates.h"

namespace antichain::cpu {

// It goes element by element, so that neither threads nor vector width change a bit.
void adamw(Context&, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const AdamWStep s =
      step_of(static_cast<const AdamW&>(optimiser).options, {rate.step, rate.value}, is_matrix(t.w.shape()));
  const float root = std::sqrt(s.square_scale);
  const int64_t n = t.w.elements();
  float *const w = t.w.data<float>(), *const m = t.slots[0].data<float>(),
               *const v = t.slots[1].data<float>();
  const float* const dw = t.dw.data<float>();
#pragma omp parallel for simd schedule(static) if (parallel : n > parallel_elements)
  for (int64_t i = 0; i < n; ++i) {
    const float g = dw[i];
    const float decayed = w[i] * s.kept;
    m[i] += s.of_mean * (g - m[i]);
    v[i] = s.beta2 * v[i] + s.of_square * (g * g);
    w[i] = decayed - s.length * (m[i] / (std::sqrt(v[i]) / root + s.epsilon));
  }
}

void adamw_ahead(Context&, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const auto& by = static_cast<const Prediction&>(optimiser);
  const std::vector<AdamWStep> steps = predicted_steps(static_cast<const AdamW&>(*by.of).options, by,
                                                       {rate.step, rate.value}, is_matrix(t.w.shape()));
  const int64_t n = t.w.elements();
  float* const to = t.w.data<float>();
  const float *const w = t.dw.data<float>(), *const m = t.slots[0].data<float>(),
                     *const v = t.slots[1].data<float>();
  std::copy_n(w, n, to);
  for (const AdamWStep& s : steps) {
    const float root = std::sqrt(s.square_scale);
#pragma omp parallel for simd schedule(static) if (parallel : n > parallel_elements)
    for (int64_t i = 0; i < n; ++i)
      to[i] = to[i] * s.kept - s.length * (m[i] / (std::sqrt(v[i]) / root + s.epsilon));
  }
}

}  // namespace antichain::cpu
