// Declares the cases of the pointwise operators: a part of the table `cases()`.
#pragma once

#include <vector>

#include "tests/layers/op_harness.h"

namespace antichain::harness {

std::vector<OpCase> pointwise_cases();

}  // namespace antichain::harness
