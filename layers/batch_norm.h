// BatchNorm normalises over N, H and W: Ioffe & Szegedy, "Batch Normalization: Accelerating Deep Network
// Training by Reducing Internal Covariate Shift", ICML 2015.
//
//   train     y = weight · (x − mean) / sqrt(variance + eps) + bias, of this micro-batch
//   evaluate  the same with running_mean and running_var
//
// With fixed_statistics it computes as in evaluation also where it is trained, as PyTorch's BatchNorm2d does
// in evaluation mode (a "frozen" one): the running statistics stay as they are, and dx = dy · weight /
// sqrt(running_var + eps). Weight and bias are trained unless they are frozen, too.
//
// The operator keeps no hidden state: it writes each micro-batch's mean and biased variance as `statistics`,
// and the step absorbs them into the running statistics in micro-batch order, as PyTorch's BatchNorm2d would:
//   running ← (1 − momentum) · running + momentum · (mean, variance · n / (n − 1)),   n = N H W
//
// An engine may fuse it with the nodes behind it (framework/fuse.h):
//
//   y = relu(batch norm of x [0] + x [1])     with add and relu; each of the two may be missing
//   y = f(batch norm of x)                    with an activation function f (layers/activate.h)
#pragma once

#include <optional>

#include "framework/graph.h"
#include "layers/activate.h"

namespace antichain {

struct BatchNormOptions {
  float eps = 1e-5f;
  float momentum = 0.1f;
  bool add = false, relu = false;                               // fused
  std::optional<ActivationFunction> activation = std::nullopt;  // fused, with neither of these
  float first_weight = 1;                                       // initial weight of every channel
  bool fixed_statistics = false;                                // the running ones, in training, too
  bool affine = true;                                           // weight and bias; without them 1 and 0
};
template <class Visit>
void fields(BatchNormOptions& o, Visit&& visit) {
  visit("eps", o.eps);
  visit("momentum", o.momentum);
  visit("first_weight", o.first_weight);
  visit("fixed_statistics", o.fixed_statistics);
  visit("affine", o.affine);
}

// The params are weight (first_weight) and bias (0), of C each, where it is affine. The buffers are
// running_mean (0), running_var (1), of C each, and num_batches_tracked (i32, 1 element). The statistics are
// mean and variance (biased), of C each, float32; with fixed_statistics there are none.
class BatchNorm : public Op {
 public:
  explicit BatchNorm(BatchNormOptions options);
  std::string_view type() const override { return "batch_norm"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;  // x  N x C x H x W, twice with add
  std::shared_ptr<const Op> then(const Op& next, int input) const override;

  const BatchNormOptions options;
};

NodeId batch_norm(Graph&, std::string name, NodeId x, BatchNormOptions = {});

}  // namespace antichain
