// Computes batch norm over one block of channels of every image, with loops for each instruction set
// (batch_norm_loops.inc). The results are the same bits with all of them.
//
// One loop serves all layouts: a plane (the numbers of one image in one block of channels) is read 16 numbers
// at a time, and lane l always belongs to channel l mod block.
#pragma once

#include <cstdint>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

struct Planes {
  int64_t images;
  int64_t stride, size;  // elements: from one image's plane to the next's; of a plane
  int block;             // channels: 1, 8 or 16

  int64_t per_channel() const { return images * size / block; }
};

// Holds a constant per channel, repeated over the lanes.
struct alignas(64) Lanes {
  float at[16] = {};
};

// Computes y = (x − mean) · scale + shift.
struct Normal {
  Lanes mean, scale, shift;
};

// After says what is computed from a normalised number before it is stored.
enum class After { nothing, relu, relu6, hardswish, silu };

template <class T>
struct ForwardPass {
  const T* x;
  const T* residual;  // added to y, or nullptr
  T* y;
  After after;  // with a residual: nothing or relu
};

// Says how dy passes what came after: unchanged, by the derivative where the normalised number is recomputed,
// or by ReLU where y > 0 is read.
enum class Mask { none, recompute, read };

template <class T>
struct BackwardPass {
  const T *x, *dy, *y;         // y: with Mask::read
  T *dx, *dresidual;           // nullptr: not wanted; with Mask::recompute, dresidual may be dx
  bool add_dx, add_dresidual;  // to what is there; the second not with Mask::recompute
  Mask mask;
  After after;  // with Mask::recompute
};

// Holds the factors of the gradient dx = a · dy + (b · (x − mean) + c).
struct Gradient {
  Lanes a, b, c;
};

// T is float or Bf16. Bf16 numbers are widened to float32 for computing, and each result is rounded.
template <class T>
struct BatchNormLoops {
  // Computes the mean and the sum of squared deviations from it, per channel of the block.
  void (*moments)(const T* x, const Planes&, double* mean, double* squares);
  void (*normalise)(const ForwardPass<T>&, const Planes&, const Normal&);
  // Computes Σ dy and Σ dy · (x − Normal::mean) per channel, of the dy that pass the mask; writes dresidual.
  void (*sums)(const BackwardPass<T>&, const Planes&, const Normal&, double* sum, double* product);
  void (*gradient)(const BackwardPass<T>&, const Planes&, const Normal&, const Gradient&);
};

}  // namespace antichain::cpu
