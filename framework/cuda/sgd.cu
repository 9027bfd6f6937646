// Runs stochastic gradient descent (framework/sgd.h) on the device.
#include "framework/sgd.h"

#include "framework/cuda/update_loops.h"

namespace antichain::cuda {
namespace {

template <bool has_v>
struct Descend {
  SgdOptions options;

  ANTICHAIN_ANYWHERE void operator()(const StepNumbers& step, float& w, float dw,
                                     float (&slots)[most_slots]) const {
    const float g = dw + options.weight_decay * w;
    float by = g;
    if constexpr (has_v) {
      float& v = slots[0];
      v = options.momentum * v + g;
      by = options.nesterov ? g + options.momentum * v : v;
    }
    w -= step.rate * by;
  }
};

}  // namespace

void sgd(Stream stream, const Optimiser& optimiser, const Rate& rate, const Part* parts, int64_t count) {
  const SgdOptions& options = static_cast<const Sgd&>(optimiser).options;
  if (options.momentum == 0)
    update_parts<0>(stream, Descend<false>{options}, rate, parts, count);
  else
    update_parts<1>(stream, Descend<true>{options}, rate, parts, count);
}

}  // namespace antichain::cuda
