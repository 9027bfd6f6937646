#include "pipeline/schedule/timeline.h"

namespace antichain {

double Timeline::bubble_fraction() const {
  double busy = 0;
  for (double s : busy_s) busy += s;
  const double all = step_s * double(busy_s.size());
  return all > 0 ? 1 - busy / all : 0;
}

}  // namespace antichain
