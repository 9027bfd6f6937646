// Finds weights that nothing can be computed with: infinities, NaN, and variances below 0.
#pragma once

#include <span>
#include <string>

#include "framework/files/weights.h"

namespace antichain {

// Returns "'bn1.running_var' has a NaN (element 3 of 16)", or "" where all numbers are usable. Counts always
// are.
std::string describe_bad_number(const NamedTensor&);

// Throws Error (ExitCode::not_a_number) naming `origin` and the first tensor of these names with such a
// number.
void check_numbers(const Weights&, std::span<const std::string> names, const std::string& origin);

}  // namespace antichain
