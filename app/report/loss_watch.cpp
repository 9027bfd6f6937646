#include "app/report/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace antichain {
namespace {

// Networks without batch norm may stay at ln(classes) for 150 steps before they begin to learn. The mean over
// a hundred steps is within 0.2 % of it for a network that guesses, and 1 % below for one that has begun.
constexpr size_t patience = 200, standing = 100;  // steps
constexpr double stands = 0.005;                  // relative to ln(classes)

// With a good rate no single step is above 1.5 times the first.
constexpr size_t climb = 5;  // steps
constexpr double far = 1.5;

}  // namespace

double LossWatch::mean_of_last(size_t steps) const {
  return std::accumulate(losses_.end() - std::ptrdiff_t(steps), losses_.end(), 0.0) / double(steps);
}

// With a thousand classes a network may need more steps to become better than a guess, so the patience grows
// with the number of classes.
bool LossWatch::guessing() const {
  const size_t first = std::max(patience, 2 * size_t(run_.classes));
  if (losses_.size() < first) return false;
  return std::abs(mean_of_last(standing) / std::log(run_.classes) - 1) < stands;
}

// A network that was trained before begins below a guess, and its loss may rise to that of a guess.
bool LossWatch::diverging() const {
  const double beginning = std::max(losses_[0], std::log(run_.classes));
  return losses_.size() > climb && mean_of_last(climb) > far * beginning;
}

std::string LossWatch::advice() const {
  const bool high = run_.recipe_peak > 0 && run_.peak > run_.recipe_peak * 1.001;
  return fmt::format("try a smaller --lr ({} is the peak{}) or a longer --warmup-steps",
                     fmt::format("{:g}", run_.peak),
                     high ? fmt::format(", {}'s recipe has {:g}", run_.model, run_.recipe_peak) : "");
}

std::string LossWatch::see(double loss) {
  if (said_) return "";
  losses_.push_back(loss);
  std::string what;
  if (diverging())
    what = fmt::format("the loss is {:.1f} in the mean of {} steps and was {:.1f} in the first: it diverges",
                       mean_of_last(climb), climb, losses_[0]);
  else if (guessing())
    what = fmt::format(
        "the loss has stood at ln({}) = {:.3f} for {} steps, as if the network guessed: it does not learn",
        run_.classes, std::log(run_.classes), standing);
  if (what.empty()) return "";
  said_ = true;
  losses_ = {};
  return what + "; " + advice();
}

}  // namespace antichain
