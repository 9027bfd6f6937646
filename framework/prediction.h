// A prediction says what weights will be some updates later, before the gradients of these updates are
// known. It is computed from the weights and the optimiser's slots as they are now. Where training is
// asynchronous, a forward may read it in place of weights that will be old when its gradient is applied.
//
//   k steps as the last one   w − k · rate · D, along the direction D that each optimiser's file has
//   step by step              what k updates make of w where gradients are zero from now on, but AdamW's mean
//                             squares stay as they are
//
// Decay that is no part of the gradient (AdamW's, Muon's) takes part where the method says so; decay that is
// (SGD's) is in the direction only. The rate and the step's number are those of the update that made the
// weights. Before the first update nothing is predicted.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/optimiser.h"

namespace antichain {

struct PredictionMethod {
  std::string_view name;
  std::string_view citation;
  bool step_by_step = false;
  bool decays = false;   // else weights do not decay meanwhile
  bool stashes = false;  // whether a backward reads its forward's prediction, and not the newest weights
};

std::span<const PredictionMethod> prediction_methods();
// Returns the method of this name, or nullptr for "none". Throws Error listing the names.
const PredictionMethod* prediction_method(std::string_view name);
std::vector<std::string> prediction_names();  // "none" is the first

// A Prediction is this as a pass of an engine. Its update writes Trained::w, the predicted weights. It reads
// Trained::dw, which are the weights as they are, and the slots of the optimiser that it follows.
class Prediction : public Optimiser {
 public:
  Prediction(std::shared_ptr<const Optimiser> of, const PredictionMethod&, int steps);
  std::string_view name() const override { return name_; }  // the optimiser's, and " ahead"
  std::string str() const override;
  std::vector<std::string> slots(const ParamSpec& spec) const override { return of->slots(spec); }

  const std::shared_ptr<const Optimiser> of;
  const PredictionMethod method;
  const int steps;

 private:
  const std::string name_;
};

// Returns the pass for an optimiser, with its groups, but without its average.
std::shared_ptr<const Optimiser> prediction_of(const std::shared_ptr<const Optimiser>&,
                                               const PredictionMethod&, int steps);

}  // namespace antichain
