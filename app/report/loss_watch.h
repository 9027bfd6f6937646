// A LossWatch finds out from the losses of a run's steps that the run does not learn, and says so once, with
// advice.
//
//   guessing    the loss has stayed at ln(classes), like that of a network that answers every image alike
//   diverging   the loss is far above what it was at the beginning
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace antichain {

struct WatchedRun {
  std::string model;
  int classes = 10;
  double peak = 0, recipe_peak = 0;  // learning rates: the run's and the recipe's for its batch
};

class LossWatch {
 public:
  explicit LossWatch(WatchedRun run) : run_(std::move(run)) {}

  // Takes the mean loss of each step that counted. Returns a sentence, or "".
  std::string see(double loss);

 private:
  double mean_of_last(size_t steps) const;
  bool guessing() const;
  bool diverging() const;
  std::string advice() const;

  WatchedRun run_;
  std::vector<double> losses_;  // until a warning was given
  bool said_ = false;
};

}  // namespace antichain
