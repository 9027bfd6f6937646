// LayerNorm normalises every sample, or every position of it, by itself: Ba, Kiros & Hinton, "Layer
// Normalization", arXiv 2016.
//
//   y = weight · (x − mean) / sqrt(variance + eps) + bias, mean and biased variance over a row
//
// RMSNorm (`centred` is false) leaves out the mean: Zhang & Sennrich, "Root Mean Square Layer
// Normalization", NeurIPS 2019.
//
//   y = weight · x / sqrt(mean of x² + eps)
//
// A row is either all numbers of the last axes (torch.nn.LayerNorm), or all channels of one pixel of
// N x C x H x W (LayerNorm2d of torchvision's ConvNeXt). It is the same in training and in evaluation.
#pragma once

#include "framework/graph.h"

namespace antichain {

struct LayerNormOptions {
  Shape over = {};        // extents of the last axes (normalized_shape); empty: the last axis
  bool channels = false;  // a row is the channels of a pixel; then `over` is empty
  float eps = 1e-5f;
  bool affine = true;  // weight and bias (elementwise_affine)
  bool bias = true;    // with affine
  bool centred = true;
};
template <class Visit>
void fields(LayerNormOptions& o, Visit&& visit) {
  visit("over", o.over);
  visit("channels", o.channels);
  visit("eps", o.eps);
  visit("affine", o.affine);
  visit("bias", o.bias);
  visit("centred", o.centred);
}

// The params are weight (1) and bias (0), of the shape of a row: `over`, or C with `channels`.
class LayerNorm : public Op {
 public:
  explicit LayerNorm(LayerNormOptions options);
  std::string_view type() const override { return "layer_norm"; }
  std::string str() const override;
  Signature infer(std::span<const Shape> x) const override;  // x  of rank 2 to 6; of 4 with channels

  // Returns the shape of a row of x.
  Shape row(const Shape& x) const;

  const LayerNormOptions options;
};

NodeId layer_norm(Graph&, std::string name, NodeId x, LayerNormOptions = {});

struct RmsNormOptions {
  Shape over = {};  // as that of LayerNormOptions
  float eps = 1e-6f;
  bool affine = true;
};
NodeId rms_norm(Graph&, std::string name, NodeId x, RmsNormOptions = {});

}  // namespace antichain
