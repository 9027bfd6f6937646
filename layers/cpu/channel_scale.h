// Runs the loops of channel_scale_loops over the planes of an activation. The factors are those of a
// parameter, which all images share, or those of a tensor of one pixel, which has its own for each image.
#pragma once

#include "layers/cpu/activation.h"
#include "layers/cpu/channel_scale_loops.h"

namespace antichain::cpu {

template <class T>
class ChannelScale {
 public:
  explicit ChannelScale(const TensorSpec& x) : view_(x), loops_(best_loops<ChannelScaleLoops<T>>()) {}

  const Activation& view() const { return view_; }

  // `of_block` points to the factors of the plane's block of channels.
  template <class F>
  void forward(const T* x, const F* of_block, T* y, int64_t plane) const {
    const int64_t at = plane * view_.plane();
    loops_.forward(x + at, factors(of_block, plane).lanes, y + at, view_.plane());
  }

  // `whole` has the tensors' beginnings, and `sum` for this plane.
  template <class F>
  void backward(const ScaleGradient<T>& whole, const F* of_block, int64_t plane) const {
    const int64_t at = plane * view_.plane();
    ScaleGradient<T> pass = whole;
    pass.x += at;
    pass.dy += at;
    if (pass.dx) pass.dx += at;
    loops_.backward(pass, factors(of_block, plane).lanes, view_.plane(), int(view_.block));
  }

  // Returns how many channels of the plane's block are not padding.
  int64_t channels(int64_t plane) const {
    return std::min(view_.block, view_.channels - plane % view_.blocks * view_.block);
  }

 private:
  template <class F>
  Factors<F> factors(const F* of_block, int64_t plane) const {
    return {of_block, channels(plane), view_.block};
  }

  const Activation view_;
  const ChannelScaleLoops<T>& loops_;
};

}  // namespace antichain::cpu
