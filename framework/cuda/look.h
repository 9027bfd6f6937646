// Searches many tensors for infinities and NaN in one launch, because a stage has hundreds of small ones.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/cuda/resources.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// A Piece is a run of one tensor's numbers on the device.
struct Piece {
  const std::byte* at = nullptr;
  uint32_t count = 0;
  uint16_t bytes = 0;   // of a number: 2 for bf16, 4 for float32, 8 for float64
  uint16_t tensor = 0;  // which of the tensors looked at
};
// Returns all numbers of the floating-point tensors as pieces. Integer tensors cannot hold infinities or NaN
// and are left out.
std::vector<Piece> pieces_of(const std::vector<Tensor>&);

// Sets found[tensor] to 1 where a number of the tensor is not finite; otherwise leaves it. `pieces` and
// `found` are on the device.
void look(Stream, const Piece* pieces, int64_t count, int32_t* found);

}  // namespace antichain::cuda
