// Every operator's infer() begins with these checks: the inputs must have the right number and rank, or one
// clear Error names the shapes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "framework/initialise.h"
#include "framework/tensor.h"
#include "layers/window.h"

namespace antichain {

// Throws Error unless there are `count` inputs, each of rank `rank` (0 = any).
void check_inputs(std::string_view op, std::span<const Shape> x, int count, int rank);

// Returns "3", or "1x7" when not square: options are written like this in an operator's str().
std::string str(Extent extent);
// Returns what str(Extent) does where both sides are equal, otherwise "1x0 before, 2x1 after".
std::string str(const Padding&);
std::string str(const Initialiser& init);  // "normal 0.01"

}  // namespace antichain
