// An Averaged optimiser follows another one's weights with their exponential moving average, which is mostly
// the better network (Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", SIAM
// Journal on Control and Optimization, 1992; with a decay as in Tarvainen and Valpola, "Mean teachers are
// better role models", NeurIPS 2017):
//
//   e ← e + (1 − decay) · (w − e)        after each update of w
//
// e is the slot "ema", the last of a parameter. At the beginning of a run it equals the initial weights: code
// that draws or reads weights sets it (RankModel::begin_run).
#pragma once

#include "framework/optimiser.h"

namespace antichain {

// An Average is the averaging alone, as a pass of its own. Its slot is "ema".
class Average : public Optimiser {
 public:
  explicit Average(double decay) : decay(decay) {}
  std::string_view name() const override { return "ema"; }
  std::string str() const override;
  std::vector<std::string> slots(const ParamSpec&) const override { return {"ema"}; }

  const double decay;
};

class Averaged : public Optimiser {
 public:
  Averaged(std::shared_ptr<const Optimiser> of, double decay)
      : of(std::move(of)), average(std::make_shared<Average>(decay)) {}
  std::string_view name() const override { return of->name(); }
  std::string str() const override;
  std::vector<std::string> slots(const ParamSpec&) const override;

  const std::shared_ptr<const Optimiser> of;
  const std::shared_ptr<const Average> average;
};

// Returns the optimiser as an Averaged one, or nullptr where it keeps no average.
const Averaged* averaged(const Optimiser&);

}  // namespace antichain
