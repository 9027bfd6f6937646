// AmxConvolution computes bf16 convolutions with AMX, on tensors blocked by 16 channels.
//
// The pixels of some images are copied into a frame: 32 channels of a pixel lie together, and zeros lie
// between the rows and between the images. The pixels under one tap of the kernel, for results that follow
// each other in a row, then follow each other as well, and so they do from row to row and from image to
// image. So a tile of 16 pixels is loaded where it lies, and a convolution is a sum of products of tiles over
// taps and channels. (Results that would lie between the rows are computed, too, and dropped.) Of a
// convolution with stride s, a frame holds every s-th pixel of a row or a column together. The input gradient
// is the same sum over dy with the weights transposed, and for a weight gradient tiles are products of
// pixels: x is transposed.
//
// Groups of 4 to 32 channels are multiplied as if the 32 channels of a pixel were one group, with zeros as
// the weights between groups: tiles are so fast that this costs less than anything narrower.
//
// Products of bf16 numbers are summed in float32. The order of a sum depends on the shape alone.
//
// oneDNN 2.6.3 has AMX only for channels that all lie together (nhwc), not for blocks, and reads and writes
// gradients of weights once an image.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "framework/context.h"
#include "framework/op.h"
#include "framework/tensor.h"
#include "layers/conv2d.h"
#include "layers/cpu/amx_loops.h"
#include "layers/cpu/taps.h"

namespace antichain::cpu {

class AmxConvolution : public Kernel {
 public:
  // Returns the kernel if this is such a convolution, and the machine has the instructions.
  static std::optional<AmxConvolution> of(const Conv2d&, const Shape& x, const Shape& y, Precision);

  // Tensors are `blocked()`, weights OIhw16i16o (of groups plain), a bias plain. The prepared tensors are the
  // weights as tiles for the forward pass and for the input gradient, and the bias with zeros behind it.
  std::vector<TensorSpec> prepared() const;
  void prepare(Context&, std::span<const Tensor> params, std::span<const Tensor> prepared) const override;
  void forward(Context&, const Forward&) const override;
  void backward(Context&, const Backward&) const override;
  int64_t workspace_bytes(int threads) const;

 private:
  // Blocks of channels of all images.
  struct Side {
    int64_t blocks, height, width;
    int64_t plane() const { return height * width * amx::lanes; }
    int64_t image() const { return blocks * plane(); }
    int64_t frames() const { return (blocks + 1) / 2; }  // planes of 32 channels
  };
  struct Frame;

  AmxConvolution() = default;
  // Return of how many planes of the source a block of results is a sum, and the first of them.
  int64_t planes_of_sum(const Side& from) const;
  int64_t first_plane(int64_t block) const;
  // Returns where 16 x 16 weights of two blocks and a tap are: in OIhw16i16o, or with groups, in the same
  // order of the pairs of blocks that have any.
  int64_t place_of(int64_t out, int64_t in, int64_t tap) const;
  int64_t weight_numbers() const;
  template <class F>
  void for_each_weight_of_groups(F&&) const;  // f(where it is in the plain layout, where among the above)
  Frame sum_frame(const Side& from, const PlaneTaps&) const;
  Frame weights_frame() const;
  void pack(const Side& from, const Side& to, const PlaneTaps&, bool turned, int threads,
            const float* weights, Bf16* tiles) const;
  void convolve(Context&, const Side& from, const Side& to, const PlaneTaps&, const Bf16* source,
                const Bf16* tiles, const float* bias, Bf16* result) const;
  void correlate(Context&, const Bf16* x, const Bf16* dy, float* dw, Into) const;

  int64_t images_ = 0, taps_ = 0;  // taps of the kernel
  int64_t group_ = 0;              // channels of a group; 0: there are no groups
  int kernel_width_ = 0;
  Side x_{}, y_{};
  bool bias_ = false;
  PlaneTaps forward_{}, backward_{};
};

}  // namespace antichain::cpu
