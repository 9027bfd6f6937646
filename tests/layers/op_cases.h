// Declares the table of awkward cases on which every engine's operators are tested.
#pragma once

#include <vector>

#include "tests/layers/op_harness.h"

namespace antichain::harness {

std::vector<OpCase> cases();
// Parts of the table, which `cases` appends.
std::vector<OpCase> norm_cases();

// Parts of the table that have files of their own.
std::vector<OpCase> attention_cases();
std::vector<OpCase> convolution_cases();
std::vector<OpCase> interpolate_cases();
std::vector<OpCase> shape_cases();

}  // namespace antichain::harness
