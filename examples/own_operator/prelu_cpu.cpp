// This is PReLU on the CPU, for float32 in plain layout (N x C x H x W). Backward reads x again:
//
//   dx = dy where x > 0, else a[c] dy          da[c] = sum of x dy over all elements of channel c with x <= 0
//
// A channel's sum is added up in one order, in double, so that the numbers never depend on threads.
#include "framework/backend.h"
#include "prelu.h"

using namespace antichain;

namespace {

class PReluKernel : public Kernel {
 public:
  explicit PReluKernel(const Shape& x) : images_(x[0]), channels_(x[1]), pixels_(x[2] * x[3]) {}

  void forward(Context&, const Forward& f) const override {
    const float *x = f.x[0].data<float>(), *a = f.params[0].data<float>();
    float* y = f.y.data<float>();
    each_plane([&](int64_t channel, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] > 0 ? x[i] : a[channel] * x[i];
    });
  }

  // Either half may be asked for alone: an empty span or tensor is not wanted now.
  void backward(Context&, const Backward& b) const override {
    const float *x = b.x[0].data<float>(), *dy = b.dy.data<float>(), *a = b.params[0].data<float>();
    if (!b.dx.empty() && b.dx[0]) {
      float* dx = b.dx[0].data<float>();
      each_plane([&](int64_t channel, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) dx[i] = x[i] > 0 ? dy[i] : a[channel] * dy[i];
      });
    }
    if (!b.dw.empty() && b.dw[0]) add_slopes(x, dy, b.dw[0].data<float>(), b.into);
  }

 private:
  template <class F>
  void each_plane(const F& f) const {
    for (int64_t plane = 0; plane < images_ * channels_; ++plane)
      f(plane % channels_, plane * pixels_, (plane + 1) * pixels_);
  }

  void add_slopes(const float* x, const float* dy, float* da, Into into) const {
    std::vector<double> sums(size_t(channels_), 0.0);
    each_plane([&](int64_t channel, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (!(x[i] > 0)) sums[size_t(channel)] += double(x[i]) * dy[i];
    });
    for (int64_t c = 0; c < channels_; ++c)
      da[c] = (into == Into::accumulate ? da[c] : 0.0f) + float(sums[size_t(c)]);
  }

  int64_t images_, channels_, pixels_;
};

}  // namespace

void register_prelu() {
  register_kernel(
      "cpu", "prelu",
      {.lower =
           [](const Op&, std::span<const Shape>, std::span<const Layout>, Precision) {
             return Lowering{
                 .x = {Layout::plain}, .y = Layout::plain, .params = {Layout::plain}, .keeps_x = true};
           },
       .make = [](const Op&, std::span<const TensorSpec> x, const Lowering&) -> std::unique_ptr<Kernel> {
         return std::make_unique<PReluKernel>(x[0].shape);
       }});
}
