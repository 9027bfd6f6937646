// Runs stochastic gradient descent (framework/sgd.h) over one parameter.
#include "framework/sgd.h"

#include <algorithm>

#include "framework/error.h"
#include "layers/cpu/updates.h"

namespace antichain::cpu {
namespace {

// Updates w, dw and v element by element, so that neither threads nor vector width change a bit. The compiler
// removes `has_v` without momentum from the loop.
template <bool has_v, bool nesterov>
void pass(const SgdOptions& o, float decay, float rate, int64_t n, float* w, const float* dw, float* v) {
#pragma omp parallel for simd schedule(static) if (parallel : n > parallel_elements)
  for (int64_t i = 0; i < n; ++i) {
    const float g = dw[i] + decay * w[i];
    float step = g;
    if constexpr (has_v) {
      v[i] = o.momentum * v[i] + g;
      step = nesterov ? g + o.momentum * v[i] : v[i];
    }
    w[i] -= rate * step;
  }
}

}  // namespace

void sgd(Context&, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const SgdOptions& options = static_cast<const Sgd&>(optimiser).options;
  const float decay = decay_of(options.weight_decay, options.decay_groups, is_matrix(t.w.shape()));
  float* const w = t.w.data<float>();
  const float* const dw = t.dw.data<float>();
  if (t.slots.empty())
    pass<false, false>(options, decay, rate.value, t.w.elements(), w, dw, nullptr);
  else if (options.nesterov)
    pass<true, true>(options, decay, rate.value, t.w.elements(), w, dw, t.slots[0].data<float>());
  else
    pass<true, false>(options, decay, rate.value, t.w.elements(), w, dw, t.slots[0].data<float>());
}

void sgd_ahead(Context&, const Optimiser& optimiser, const Rate& rate, const Trained& t) {
  const auto& by = static_cast<const Prediction&>(optimiser);
  const float length = predicted_length(static_cast<const Sgd&>(*by.of).options, by, rate.value);
  const int64_t n = t.w.elements();
  float* const to = t.w.data<float>();
  const float* const w = t.dw.data<float>();
  if (t.slots.empty()) {
    std::copy_n(w, n, to);
    return;
  }
  const float* const v = t.slots[0].data<float>();
#pragma omp parallel for simd schedule(static) if (parallel : n > parallel_elements)
  for (int64_t i = 0; i < n; ++i) to[i] = w[i] - length * v[i];
}

}  // namespace antichain::cpu
