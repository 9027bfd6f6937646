#include "pipeline/measure/measure_progress.h"

#include <algorithm>

namespace antichain {

double share_of_step(int id, bool forward, int microbatch, int nodes, int microbatches) {
  const int done = forward ? id + 1 : nodes + 2 * (nodes - id);
  return double(3 * nodes * microbatch + done) / double(3 * nodes * microbatches);
}

int fitting_repeats(double budget_s, double round_s, int least, int most) {
  const int fitting = int(std::clamp(budget_s / std::max(round_s, 1e-6), 1.0, 1e6));
  return std::clamp(fitting, least, most);
}

MeasureProgress progress_after(double steps, double all, double elapsed_s, const RepeatOptions& o) {
  if (steps <= 0) return {.share = 0, .left_s = o.budget_s, .node = {}};
  const double step_s = elapsed_s / steps;
  if (all == 0) all = 1 + fitting_repeats(o.budget_s, step_s, o.least, o.most);
  const double share = std::min(steps / all, 1.0);
  return {.share = share, .left_s = step_s * all * (1 - share), .node = {}};
}

}  // namespace antichain
