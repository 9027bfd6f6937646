// Normal holds three arrays of floats, with a number for each channel, each channel of an image, or each row:
// y = (x − mean) · scale + shift.
#pragma once

#include <cmath>

#include "framework/cuda/launch.h"

namespace antichain::cuda {

struct Normal {
  float *mean, *scale, *shift;

  // Sets number i. The error of rounding the mean to float is added back to the shift.
  ANTICHAIN_ANYWHERE void set(Index i, double m, double variance, double eps, float weight,
                              float bias) const {
    const double s = double(weight) / sqrt(variance + eps);
    mean[i] = float(m);
    scale[i] = float(s);
    shift[i] = float(double(bias) + (double(float(m)) - m) * s);
  }
};

// Returns the Normal of `count` numbers whose three arrays lie one behind the other from `at` on.
inline Normal normal_at(float* at, int64_t count) { return {at, at + count, at + 2 * count}; }

}  // namespace antichain::cuda
