// Runs the average of weights (framework/averaged.h) on the device.
#include "framework/averaged.h"
#include "framework/cuda/update_loops.h"

namespace antichain::cuda {
namespace {

struct Follow {
  float share = 0;  // 1 − decay

  ANTICHAIN_ANYWHERE Follow at(const StepNumbers&, bool) const { return *this; }
  ANTICHAIN_ANYWHERE void operator()(const float& w, float, float (&slots)[most_slots]) const {
    slots[0] += share * (w - slots[0]);
  }
};

}  // namespace

void ema(Stream stream, const Optimiser& optimiser, const Rate& rate, const Part* parts, int64_t count) {
  const Follow follow{float(1 - static_cast<const Average&>(optimiser).decay)};
  update_parts<1>(stream, follow, rate, parts, count);
}

}  // namespace antichain::cuda
