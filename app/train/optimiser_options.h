// These options describe the optimiser: its name, its own settings, and which parameters weight decay is for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/cli_forward.h"
#include "framework/adamw.h"
#include "framework/graph.h"
#include "framework/sgd.h"
#include "models/recipe.h"

namespace antichain {

struct OptimiserOptions {
  std::string name = "sgd";
  float momentum = SgdOptions().momentum, weight_decay = SgdOptions().weight_decay;
  bool nesterov = true;
  double beta1 = AdamWOptions().beta1, beta2 = AdamWOptions().beta2, epsilon = AdamWOptions().epsilon;
  std::string decay_groups = "all";
  double clip_norm = 0;                        // 0: gradients are not clipped
  double ema = 0;                              // decay of the weights' average; 0: there is none
  std::vector<std::string> rate_of, decay_of;  // "PATTERN=X", of parameters with settings of their own
};

void add_optimiser_options(CLI::App&, OptimiserOptions&);

// These two functions are for commands that measure a network but do not train it. They add and settle the
// options on which the time of an update and the bytes of its state depend. An optimiser that is not named is
// the recipe's.
void add_measured_optimiser_options(CLI::App&, OptimiserOptions&);
void settle_optimiser(const CLI::App& command, const Recipe&, OptimiserOptions&);

// Returns the optimiser of that name with its usual values, which for SGD are those of the recipe.
OptimiserOptions usual_options(const std::string& name, const Recipe&);
// Gives the options that the command line leaves open their values: the recipe's optimiser, and the usual
// values of the optimiser.
void follow_recipe(const CLI::App& train, const Recipe&, OptimiserOptions&);
// Returns the peak rate of steps of `batch` samples where the command line leaves it open.
double usual_peak(const OptimiserOptions&, const Recipe&, int batch);

// Throws a usage Error when an option was given that the optimiser has no use for.
void check_optimiser_options(const CLI::App& train, const OptimiserOptions&);

std::shared_ptr<const Optimiser> make_optimiser(const OptimiserOptions&);
// Returns it with the groups of parameters that the options name. `peak` is the rate of all others. Throws a
// usage Error for a pattern that no parameter matches that is trained.
std::shared_ptr<const Optimiser> make_optimiser(const OptimiserOptions&, const Graph&, double peak);
// Returns ", rate of backbone.* 1e-05", with all groups, or "".
std::string describe_groups(const OptimiserOptions&);

}  // namespace antichain
