// Runs AdamW (framework/adamw.h) on the device.
#include "framework/adamw.h"

#include <cmath>

#include "framework/cuda/update_loops.h"

namespace antichain::cuda {
namespace {

struct AdaptedStep {
  AdamWStep s;
  float root = 1;

  ANTICHAIN_ANYWHERE void operator()(float& w, float dw, float (&slots)[most_slots]) const {
    float &m = slots[0], &v = slots[1];
    const float decayed = w * s.kept;
    m += s.of_mean * (dw - m);
    v = s.beta2 * v + s.of_square * (dw * dw);
    w = decayed - s.length * (m / (sqrtf(v) / root + s.epsilon));
  }
};

struct Adapt {
  AdamWOptions options;

  ANTICHAIN_ANYWHERE AdaptedStep at(const StepNumbers& now, bool matrix) const {
    const AdamWStep s = step_of(options, now, matrix);
    return {s, sqrtf(s.square_scale)};
  }
};

}  // namespace

void adamw(Stream stream, const Optimiser& optimiser, const Rate& rate, const Part* parts, int64_t count) {
  update_parts<2>(stream, Adapt{static_cast<const AdamW&>(optimiser).options}, rate, parts, count);
}

}  // namespace antichain::cuda
