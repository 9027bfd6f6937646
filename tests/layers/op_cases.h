// Declares the table of awkward cases on which every engine's operators are tested.
#pragma once

#include <vector>

#include "tests/layers/op_harness.h"

namespace antichain::harness {

std::vector<OpCase> cases();

}  // namespace antichain::harness
