// Whether numbers are numbers: a scan for infinities and NaNs that costs no more than reading the bytes.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "framework/tensor.h"

namespace antichain {

class Context;

bool all_finite(const float*, int64_t count);
bool all_finite(const double*, int64_t count);
bool all_finite(const Bf16*, int64_t count);

// Of a tensor in the memory of the context's device, padding of blocked layouts included (it is zero);
// integers always are.
bool all_finite(const Context&, const Tensor&);

}  // namespace antichain
