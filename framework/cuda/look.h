// The look for numbers that are infinite or NaN, in many tensors by one launch: a stage has hundreds of small
// ones.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/cuda/resources.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// A run of one tensor's numbers, on the device.
struct Piece {
  const std::byte* at = nullptr;
  uint32_t count = 0;
  uint16_t bytes = 0;   // of a number: 2 for bf16, 4 for float32, 8 for float64
  uint16_t tensor = 0;  // which of the tensors looked at
};
// All numbers of floating-point tensors; the others have none that could be looked at.
std::vector<Piece> pieces_of(const std::vector<Tensor>&);

// Sets found[tensor] to 1 where a number of the tensor is not finite, else leaves it. `pieces` and `found`
// are on the device.
void look(Stream, const Piece* pieces, int64_t count, int32_t* found);

}  // namespace antichain::cuda
