// SpectralNorm divides a weight by its largest singular value: Miyato, Kataoka, Koyama & Yoshida, "Spectral
// Normalization for Generative Adversarial Networks", ICLR 2018, as torch.nn.utils.spectral_norm has it. It
// is a step of a computed parameter (framework/computed.h).
//
//   x, y  1 x K x …, a matrix W of K rows     u  K     v  as many numbers as a row has
//   train     `iterations` times: v = Wᵀ u / |Wᵀ u|, u = W v / |W v|; then y = W / (uᵀ W v)
//   evaluate  y = W / (uᵀ W v) of u and v as they are
//   dW = (dy − (Σ dy · y) u vᵀ) / σ, σ = uᵀ W v: u and v are constants for the gradient
//
// The buffers are u and v at the beginning of a step, from which every micro-batch computes the same ones. So
// PyTorch's numbers are those of one micro-batch a step.
#pragma once

#include "framework/graph.h"

namespace antichain {

struct SpectralNormOptions {
  int iterations = 1;
  float eps = 1e-12f;  // no norm is less
};
template <class Visit>
void fields(SpectralNormOptions& o, Visit&& visit) {
  visit("iterations", o.iterations);
  visit("eps", o.eps);
}

class SpectralNorm : public Op {
 public:
  explicit SpectralNorm(SpectralNormOptions);  // Error unless iterations and eps are positive
  std::string_view type() const override { return "spectral_norm"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;

  const SpectralNormOptions options;
};

// Returns how an engine lowers it. The stash is σ, in double.
Lowering lower_spectral_norm(Precision);

}  // namespace antichain
