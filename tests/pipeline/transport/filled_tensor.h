// This makes a tensor of bytes that are all the same, to be sent and recognised.
#pragma once

#include <algorithm>

#include "framework/tensor.h"

namespace antichain::test {

inline Tensor filled_tensor(int64_t bytes, int value) {
  const Tensor tensor = Tensor::host({{bytes}, DType::u8});
  std::fill_n(tensor.raw(), bytes, std::byte(value));
  return tensor;
}

}  // namespace antichain::test
