// Runs the optimiser over all parameters of a stage in one launch, because there are hundreds and most are
// short vectors.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/backend.h"
#include "framework/bf16.h"
#include "framework/cuda/resources.h"
#include "framework/sgd.h"

namespace antichain::cuda {

// A Part is a run of one parameter's numbers on the device; it begins at a multiple of 16 bytes.
struct Part {
  float* w = nullptr;
  const float* dw = nullptr;
  float* momentum = nullptr;  // may be nullptr
  Bf16* rounded = nullptr;    // may be nullptr
  uint32_t count = 0;
};
std::vector<Part> parts_of(const std::vector<Trained>&);

// Updates w, momentum and rounded of each part, by the same operations in the same order as on the CPU.
// `parts` is on the device.
void update(Stream, const SgdOptions&, const Rate&, const Part* parts, int64_t count);

}  // namespace antichain::cuda
