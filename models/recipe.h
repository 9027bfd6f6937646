// A recipe says how a model is trained by default: batch, optimiser, learning rate and length.
//
// A recipe's rate is that of its own batch. For another batch it grows and shrinks in proportion: Goyal et
// al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017, section 2.1, who found it to hold
// up to some 8,000 samples.
#pragma once

#include <string>
#include <string_view>

#include "framework/adamw.h"
#include "framework/learning_rate.h"
#include "framework/sgd.h"

namespace antichain {

struct Recipe {
  int batch = 64;                 // samples per step
  LearningRateOptions rate;       // its peak, for this batch, and its course
  std::string optimiser = "sgd";  // by the name that --optimiser takes
  SgdOptions sgd = {};            // where SGD trains it; another optimiser has its own usual values …
  AdamWOptions adamw = {};        // … but where the recipe's is AdamW, it has these
  double clip_norm = 0;           // the largest norm of a step's gradients; 0: any
  int epochs = 30;
  std::string source;  // where the values come from
};

// Returns the recipe of a shipped model, or for any other name the general one: a low rate after a long rise.
Recipe shipped_recipe(std::string_view model);

// Returns a low rate after a long rise, which most networks bear.
Recipe general_recipe();

// Returns the recipe's peak rate for steps of `batch` samples.
double peak_for(const Recipe&, int batch);

}  // namespace antichain
