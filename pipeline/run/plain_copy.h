// What people are told of a tensor is computed in one form, whatever the engine keeps it in.
#pragma once

#include "framework/tensor.h"

namespace antichain {

class Context;

// Returns a tensor of the context's device as float32 in host memory and plain layout: the tensor itself
// where it has this form already, and else a copy. Whole numbers stay as they are.
Tensor plain_on_host(const Context&, const Tensor&);

}  // namespace antichain
