// Runs stochastic gradient descent (framework/sgd.h) on the device.
#include "framework/sgd.h"

#include "framework/cuda/update_loops.h"

namespace antichain::cuda {
namespace {

template <bool has_v>
struct Descend {
  SgdOptions options;
  float decay = 0, rate = 0;

  ANTICHAIN_ANYWHERE Descend at(const StepNumbers& now, bool matrix) const {
    return {options, decay_of(options.weight_decay, options.decay_groups, matrix), now.rate};
  }
  ANTICHAIN_ANYWHERE void operator()(float& w, float dw, float (&slots)[most_slots]) const {
    const float g = dw + decay * w;
    float by = g;
    if constexpr (has_v) {
      float& v = slots[0];
      v = options.momentum * v + g;
      by = options.nesterov ? g + options.momentum * v : v;
    }
    w -= rate * by;
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
