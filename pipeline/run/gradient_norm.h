// These functions measure and scale the gradients of a rank, to clip them by the norm over all parameters of
// all ranks (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks", ICML
// 2013; torch.nn.utils.clip_grad_norm_).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "pipeline/stage/rank_model.h"

namespace antichain {

// These are the sums of the squares of the parameters' gradients, by full name.
using SquaresByName = std::map<std::string, double>;

// A GradientClip hears the squares of a rank right before a training step's update, and returns the factor
// for all gradients, which is the same on every rank. Every rank calls it once a step, so it asks the others.
using GradientClip = std::function<float(const SquaresByName& mine)>;

// Returns those of the parameters that are trained. The order of a sum depends on nothing but the parameter's
// size and layout. On a device with memory of its own the gradients are copied to the host, one by one.
SquaresByName squares_of_gradients(const RankModel&);

// Multiplies the gradients of the same parameters.
void scale_gradients(RankModel&, float factor);

// Returns min(1, most / (norm + 1e-6)), where the norm is the root of all squares, added up in the order of
// the names. Returns 1 where the norm is not finite: then a gradient is not, which the judge hears of.
float clip_factor(const SquaresByName& of_all_ranks, double most);

}  // namespace antichain
