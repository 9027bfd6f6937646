// The table of awkward cases that every engine's operators are run over.
#pragma once

#include <vector>

#include "tests/layers/op_harness.h"

namespace antichain::harness {

std::vector<OpCase> cases();

}  // namespace antichain::harness
