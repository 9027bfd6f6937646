// This is the lowering of an operator without parameters, whose input and output have one layout, and whose
// backward can add to dx.
#pragma once

#include "framework/op.h"

namespace antichain {

inline Lowering in_one_layout(Layout layout, Precision precision) {
  return {.x = {layout}, .y = layout, .precision = precision, .adds_dx = true};
}

}  // namespace antichain
