// This is AdamW: Adam's adaptive steps with decoupled weight decay, as PyTorch's torch.optim.AdamW defines
// them (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2; Kingma and
// Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015):
//
//   w ← w · (1 − rate · weight_decay)
//   m ← m + (1 − beta1) · (dw − m)
//   v ← beta2 · v + (1 − beta2) · dw²
//   w ← w − rate / (1 − beta1ᵗ) · m / (√v / √(1 − beta2ᵗ) + epsilon)
//
// m and v are the slots "exp_avg" and "exp_avg_sq". t is the number of the step, which counts from 1 here, so
// a run that is resumed corrects as if it had not stopped. A step that is skipped counts in t.
//
// A prediction (framework/prediction.h) repeats the last line, and the first where it decays. Step by step m
// becomes beta1 · m, beta1² · m, …, and t counts on.
#pragma once

#include <vector>

#include "framework/by_element.h"
#include "framework/prediction.h"
#include "framework/weight_decay.h"

namespace antichain {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 1e-2;
  DecayGroups decay_groups = DecayGroups::weights;
};

class AdamW : public Optimiser, public UpdatesByElement {
 public:
  explicit AdamW(const AdamWOptions& options) : options(options) {}
  std::string_view name() const override { return "adamw"; }
  std::string str() const override;
  std::vector<std::string> slots(const ParamSpec&) const override;

  const AdamWOptions options;
};

// AdamWStep holds the numbers that all matrices, or all vectors, have in common in one step. Every engine
// computes it by these operations, in double precision, so that its bits are the same everywhere.
struct AdamWStep {
  float kept = 1;     // 1 − rate · weight_decay
  float of_mean = 0;  // 1 − beta1
  float beta2 = 0;
  float of_square = 0;     // 1 − beta2
  float length = 0;        // rate / (1 − beta1ᵗ)
  float square_scale = 0;  // 1 − beta2ᵗ
  float epsilon = 0;
};

constexpr double power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

constexpr AdamWStep step_of(const AdamWOptions& o, const StepNumbers& now, bool matrix) {
  const double rate = double(now.rate), decay = rate * decay_of(o.weight_decay, o.decay_groups, matrix);
  return {.kept = float(1 - decay),
          .of_mean = float(1 - o.beta1),
          .beta2 = float(o.beta2),
          .of_square = float(1 - o.beta2),
          .length = float(rate / (1 - power(o.beta1, now.step + 1))),
          .square_scale = float(1 - power(o.beta2, now.step + 1)),
          .epsilon = float(o.epsilon)};
}

// Returns the steps that a prediction makes after the step `last`, one of which may be as long as several.
inline std::vector<AdamWStep> predicted_steps(const AdamWOptions& o, const Prediction& by,
                                              const StepNumbers& last, bool matrix) {
  const double decay = double(last.rate) * decay_of(o.weight_decay, o.decay_groups, matrix);
  std::vector<AdamWStep> all;
  for (int i = 1; by.method.step_by_step && i <= by.steps; ++i) {
    all.push_back(step_of(o, {last.step + uint64_t(i), last.rate}, matrix));
    all.back().length *= float(power(o.beta1, uint64_t(i)));
  }
  if (by.method.step_by_step) return all;
  all.push_back(step_of(o, last, matrix));
  all.back().length *= float(by.steps);
  all.back().kept = float(1 - (by.method.decays ? by.steps * decay : 0));
  return all;
}

}  // namespace antichain
