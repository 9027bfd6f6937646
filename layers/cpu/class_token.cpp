// A class token is copied before the tokens of each sample. Its gradient is summed in double, in the order of
// the samples.
#include "layers/class_token.h"

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/elementwise_loops.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

template <class T>
class ClassTokenKernel : public Kernel {
 public:
  explicit ClassTokenKernel(const Shape& x) : samples_(x[0]), tokens_(x[1] * x[2]), width_(x[2]) {}

  void forward(Context& context, const Forward& f) const override {
    const float* token = f.params[0].data<float>();
    for_each_plane(samples_, context.threads(), [&](int64_t n) {
      T* y = f.y.data<T>() + n * sample();
      for (int64_t c = 0; c < width_; ++c) y[c] = T(token[c]);
      std::copy_n(f.x[0].data<T>() + n * tokens_, tokens_, y + width_);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    const T* dy = b.dy.data<T>();
    if (!b.dw.empty() && b.dw[0]) {
      float* dw = b.dw[0].data<float>();
      for (int64_t c = 0; c < width_; ++c) {
        double sum = 0;
        for (int64_t n = 0; n < samples_; ++n) sum += double(float(dy[n * sample() + c]));
        dw[c] = b.into == Into::accumulate ? dw[c] + float(sum) : float(sum);
      }
    }
    if (b.dx.empty() || !b.dx[0]) return;
    for_each_plane(samples_, context.threads(), [&](int64_t n) {
      const T* from = dy + n * sample() + width_;
      T* to = b.dx[0].data<T>() + n * tokens_;
      if (b.into_dx(0) == Into::accumulate)
        elementwise_loops<T>().accumulate(from, to, tokens_);
      else
        std::copy_n(from, tokens_, to);
    });
  }

 private:
  int64_t sample() const { return tokens_ + width_; }  // numbers of a sample of y

  const int64_t samples_, tokens_, width_;  // tokens_: numbers of a sample of x
};

}  // namespace

KernelEntry class_token_entry() {
  return {.lower = [](const Op&, std::span<const Shape>, std::span<const Layout>,
                      Precision precision) -> Lowering {
            return {.x = {Layout::plain}, .params = {Layout::plain}, .precision = precision, .adds_dx = true};
          },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<ClassTokenKernel>(x[0].dtype, x[0].shape); }};
}

}  // namespace antichain::cpu
