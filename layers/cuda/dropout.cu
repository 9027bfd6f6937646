// Dropout draws every element's word in its own thread, from the same counters as DropoutMask: (its logical
// number / 4 in the sample, the sample's position in the batch). Backward draws it again.
#include "layers/dropout.h"

#include "layers/cuda/image.h"
#include "layers/cuda/move.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <class T>
void drop(Stream stream, const Image& image, const DropoutMask::Draw& given, float scale, const T* from,
          T* to) {
  for_each(stream, image.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const DropoutMask::Draw draw = given.now();
    const Index pixels = image.height * image.width;
    const Index pixel = image.row(i) * image.width + image.column(i);
    const bool kept = draw.kept(int64_t(image.image(i)), int64_t(image.channel(i)) * pixels + pixel);
    to[i] = T(kept ? float(from[i]) * scale : 0.0f);
  });
}

template <class T>
class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const Dropout& op, const Shape& x) : op_(op.p, op.node_name), x_(x) {}

  void forward(Context& context, const Forward& f) const override {
    if (f.mode == Mode::evaluate)
      move_elements(stream_of(context), f.y.elements(), f.x[0].data<T>(), f.y.data<T>(), Into::overwrite);
    else
      apply(context, f.dropout, f.x[0].data<T>(), f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    if (!b.dx.empty() && b.dx[0]) apply(context, b.dropout, b.dy.data<T>(), b.dx[0].data<T>());
  }

 private:
  void apply(Context& context, const DropoutKey& key, const T* from, T* to) const {
    drop(stream_of(context), x_, DropoutMask::Draw(op_, key), float(1.0 / (1.0 - op_.p)), from, to);
  }

  const Dropout op_;
  const Image x_;
};

}  // namespace

KernelEntry dropout_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const Layout layout = layout_of(x[0]);
                return Lowering{.x = {layout}, .y = layout, .precision = precision};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<DropoutKernel>(x[0].dtype, static_cast<const Dropout&>(op), x[0].shape);
              }};
}

}  // namespace antichain::cuda
