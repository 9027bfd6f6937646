// Weight decay pulls parameters towards zero. It may leave out biases, the scales and shifts of normalisation
// and other vectors, for which it does nothing useful (He et al., "Bag of Tricks for Image Classification
// with Convolutional Neural Networks", CVPR 2019, section 3.1, "no bias decay").
#pragma once

#include "framework/tensor.h"

namespace antichain {

enum class DecayGroups {
  all,      // every parameter
  weights,  // matrices and convolutions' kernels
};

// Says whether a parameter is a matrix or a convolution's kernel. Any other is a vector: a bias, a scale or a
// shift (C, or C x 1 x 1).
inline bool is_matrix(const Shape& shape) { return shape.rank() == 2 || shape.rank() >= 4; }

// Returns the decay of a parameter.
template <class Number>
constexpr Number decay_of(Number weight_decay, DecayGroups groups, bool matrix) {
  return groups == DecayGroups::all || matrix ? weight_decay : Number(0);
}

}  // namespace antichain
