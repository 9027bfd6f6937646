// A LearningRate gives the learning rate of each step: a schedule by name, after an optional linear warm-up.
//
//   constant   the peak
//   step       the peak, times `decay` from each of the milestones (fractions of the steps after warm-up) on
//   cosine     final + (peak − final) · (1 + cos(π t / T)) / 2: Loshchilov and Hutter, "SGDR: Stochastic
//              Gradient Descent with Warm Restarts", ICLR 2017
//   one-cycle  up from peak / 25 by a cosine over 30 % of the steps (`rise_share`), then down to 1 / 10,000
//              of where it began: Smith and Topin, "Super-Convergence", 2018, with the constants of PyTorch's
//              OneCycleLR (the momentum stays as it is)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace antichain {

struct LearningRateOptions {
  std::string schedule = "one-cycle";
  double peak = 0.1;
  int64_t warmup_steps = 0;                      // rise linearly: peak / warmup_steps at step 0
  std::vector<double> milestones = {0.5, 0.75};  // of step, as `decay` is; rising, from 0 to 1
  double decay = 0.1;                            // above 0, at most 1
  double final_rate = 0;                         // of cosine; at most the peak
  double rise_share = 0.3, start_divisor = 25, end_divisor = 1e4;  // of one-cycle
};

class LearningRate {
 public:
  // Throws Error when there is no such schedule (it lists them), or a number makes no sense.
  // `total_steps` includes the warm-up.
  LearningRate(LearningRateOptions, int64_t total_steps);

  double rate(int64_t step) const;  // steps count from 0
  const LearningRateOptions& options() const { return options_; }
  int64_t total_steps() const { return total_steps_; }

 private:
  using Formula = double (*)(const LearningRateOptions&, int64_t step, int64_t steps);
  LearningRateOptions options_;
  int64_t total_steps_;
  Formula formula_;
  friend struct LearningRateTable;
};

std::vector<std::string> learning_rate_names();

}  // namespace antichain
