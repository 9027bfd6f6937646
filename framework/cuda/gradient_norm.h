// Sums the squares of gradients on the device and scales the gradients, in a few launches each, because a
// stage has hundreds of them. The order of a sum depends on nothing but the gradient's size.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/context.h"
#include "framework/cuda/look.h"
#include "framework/cuda/resources.h"

namespace antichain::cuda {

// A GradientList is in the device's memory.
struct GradientList {
  const Piece* pieces = nullptr;    // of all gradients, in order
  const uint32_t* first = nullptr;  // piece of each gradient, and the end
  double* partials = nullptr;       // square_workers for each piece
  double* of_pieces = nullptr;
  double* sums = nullptr;  // of each gradient
  float* factor = nullptr;
  int64_t count = 0, gradients = 0;  // of pieces; of gradients
};
constexpr uint32_t square_workers = 64;  // of a piece

// Leaves the sum of each gradient's squares in `sums`.
void sum_squares(Stream, const GradientList&);
// Multiplies the gradients by the factor that clips the norm of all of them, in their order, to `most`, which
// the device computes from `sums`.
void clip(Stream, const GradientList&, double most);
void scale(Stream, const GradientList&, float factor);

}  // namespace antichain::cuda
