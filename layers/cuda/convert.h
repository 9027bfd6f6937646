// Converts numbers between float32 and bf16. A conversion to fewer bits rounds to nearest.
#pragma once

#include "framework/bf16.h"
#include "framework/cuda/resources.h"

namespace antichain::cuda {

template <class T, class U>
void convert(Stream, int64_t count, const T* from, U* to);

}  // namespace antichain::cuda
