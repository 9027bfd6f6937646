// Dropout works on any layout: the mask of a sample is drawn in logical order, then applied in memory order.
// Backward draws the same mask again.
#include "layers/dropout.h"

#include <algorithm>
#include <cstring>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"
#include "layers/cpu/philox_loops.h"

namespace antichain::cpu {
namespace {

int64_t mask_bytes(const Shape& x) { return (x.elements() / x[0] + 3) / 4 * 4; }

template <class T>
class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const Dropout& op, const TensorSpec& x)
      : op_(op.p, op.node_name), view_(x.shape.rank() == 4 ? x : as_image(x)) {}

  void forward(Context& context, const Forward& f) const override {
    if (f.mode == Mode::evaluate)
      std::memcpy(f.y.raw(), f.x[0].raw(), size_t(f.y.bytes()));
    else
      apply(context, f.dropout, f.x[0].data<T>(), f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    apply(context, b.dropout, b.dy.data<T>(), b.dx[0].data<T>());
  }

 private:
  // Returns N x … as N x … x 1 x 1: layouts other than plain have four dimensions.
  static TensorSpec as_image(const TensorSpec& x) {
    return {.shape = {x.shape[0], x.shape.elements() / x.shape[0], 1, 1}};
  }

  void apply(Context& context, const DropoutKey& key, const T* from, T* to) const {
    const int64_t count = view_.channels * view_.pixels();
    auto* kept = reinterpret_cast<uint8_t*>(context.workspace(mask_bytes({1, count})));
    const DropoutMask::Draw draw(op_, key);
    constexpr int64_t at_once = 1024;
    uint32_t words[at_once];
    for (int64_t n = 0; n < view_.images; ++n) {
      for (int64_t first = 0; first < count; first += at_once) {
        const int64_t more = std::min(at_once, count - first);
        draw_words(draw, n, first / 4, (more + 3) / 4, words);
        for (int64_t i = 0; i < more; ++i) kept[first + i] = draw.keeps(words[i]);
      }
      const int64_t start = n * view_.blocks * view_.plane();
      apply_sample(kept, from + start, to + start);
    }
  }

  void apply_sample(const uint8_t* kept, const T* from, T* to) const {
    const float scale = float(1.0 / (1.0 - op_.p));
    const int64_t block = view_.block, pixels = view_.pixels();
    if (block == 1) {  // memory has the logical order
      for (int64_t i = 0; i < view_.channels * pixels; ++i) to[i] = kept[i] ? T(from[i] * scale) : T(0.0f);
      return;
    }
    for (int64_t k = 0; k < view_.blocks; ++k) {
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < block; ++c) {
          const int64_t channel = k * block + c, i = (k * pixels + p) * block + c;
          const bool keep = channel < view_.channels && kept[channel * pixels + p];
          to[i] = keep ? T(from[i] * scale) : T(0.0f);
        }
      }
    }
  }

  const Dropout op_;
  const Activation view_;
};

}  // namespace

KernelEntry dropout_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
                const Layout layout = accept(offered[0]);
                return Lowering{
                    .x = {layout}, .y = layout, .precision = precision, .workspace_bytes = mask_bytes(x[0])};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<DropoutKernel>(x[0].dtype, static_cast<const Dropout&>(op), x[0]);
              }};
}

}  // namespace antichain::cpu
