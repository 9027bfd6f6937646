// Returns the median of some measurements, which a single outlier does not move; 0 for none.
#pragma once

#include <algorithm>
#include <vector>

namespace antichain {

inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto middle = samples.begin() + std::ptrdiff_t(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace antichain
