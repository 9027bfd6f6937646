#include "pipeline/simulate/steady_step.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

namespace antichain {
namespace {

constexpr size_t longest_cycle = 12;  // steps after which clocks may repeat
constexpr double rounding = 1e-9;     // of a period

// Returns by how much every clock that moved has advanced, where it is the same for all of them.
std::optional<double> advance_s(const std::vector<double>& before, const std::vector<double>& after) {
  double least_s = INFINITY, most_s = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] == before[i]) continue;  // a link that carries nothing
    least_s = std::min(least_s, after[i] - before[i]);
    most_s = std::max(most_s, after[i] - before[i]);
  }
  if (most_s > 0 && most_s - least_s > rounding * most_s) return std::nullopt;
  return most_s;
}

}  // namespace

double steady_period_s(const std::function<std::vector<double>()>& play, int most_steps) {
  std::deque<std::vector<double>> clocks = {play()};  // the newest first
  for (int step = 1; step < most_steps; ++step) {
    clocks.push_front(play());
    for (size_t cycle = 1; cycle < clocks.size(); ++cycle)
      if (const auto advanced_s = advance_s(clocks[cycle], clocks.front()))
        return *advanced_s / double(cycle);
    if (clocks.size() > longest_cycle) clocks.pop_back();
  }
  const double steps = double(clocks.size() - 1);
  return (std::ranges::max(clocks.front()) - std::ranges::max(clocks.back())) / steps;
}

double steady_period_s(double step_s, const std::function<std::vector<double>()>& play) {
  const double period_s = steady_period_s(play);
  return period_s < step_s * (1 - rounding) ? period_s : step_s;
}

}  // namespace antichain
