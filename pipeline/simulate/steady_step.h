// Where steps overlap, each step begins with the clocks of ranks and links as the step before left them.
// After some steps all clocks advance by the same time a step, which is the period. Such clocks are a
// max-plus system (Baccelli, Cohen, Olsder and Quadrat, "Synchronization and Linearity", Wiley 1992): from
// some step on they repeat, after one step or after a few.
#pragma once

#include <functional>
#include <vector>

namespace antichain {

// A Pace says how long a step takes from an empty pipeline to an empty one, and how far steps are from each
// other in the steady state, both in seconds.
struct Pace {
  double step_s = 0, period_s = 0;
};

// `play` plays one more step and returns all clocks after it, in seconds. Returns the period. Where a rank
// waits for no other and so runs ahead of them all, it is the period of the slowest clock. Where the clocks
// do not repeat within so many steps, it is the mean of the last ones.
double steady_period_s(const std::function<std::vector<double>()>& play, int most_steps = 200);

// Returns the period of steps that last `step_s` when they are apart: the two are equal unless overlapping
// gains more than rounding.
double steady_period_s(double step_s, const std::function<std::vector<double>()>& play);

}  // namespace antichain
