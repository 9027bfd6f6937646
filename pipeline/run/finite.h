// This is a scan for infinities and NaNs that costs no more than reading the bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/bf16.h"
#include "framework/tensor.h"

namespace antichain {

class Context;

bool all_finite(const float*, int64_t count);
bool all_finite(const double*, int64_t count);
bool all_finite(const Bf16*, int64_t count);

// Says whether the numbers of a tensor in the memory of the context's device are finite. Padding of blocked
// layouts is included (it is zero). Integers always are finite.
bool all_finite(const Context&, const Tensor&);
bool all_finite(const Context&, const std::vector<Tensor>&);

}  // namespace antichain
