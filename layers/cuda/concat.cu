// Joining channels: of every pixel of y, each input holds one run of channels.
#include "layers/concat.h"

#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// One input's part: its channels begin at `start` of y's `channels`.
template <class T>
void join(Stream stream, const Image& x, Index start, Index channels, const T* from, T* y) {
  for_each(stream, x.elements(),
           [=] ANTICHAIN_DEVICE(Index i) { y[i / x.channels * channels + start + x.channel(i)] = from[i]; });
}

template <class T>
void part(Stream stream, const Image& x, Index start, Index channels, const T* dy, T* dx, bool adds) {
  for_each(stream, x.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const T term = dy[i / x.channels * channels + start + x.channel(i)];
    dx[i] = adds ? T(float(dx[i]) + float(term)) : term;
  });
}

template <class T>
class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(std::span<const TensorSpec> x) {
    for (const TensorSpec& spec : x) {
      x_.push_back({Image(spec.shape), channels_});
      channels_ += index_of(spec.shape[1]);
    }
  }

  void forward(Context& context, const Forward& f) const override {
    for (size_t i = 0; i < x_.size(); ++i)
      join(stream_of(context), x_[i].image, x_[i].start, channels_, f.x[i].data<T>(), f.y.data<T>());
  }

  void backward(Context& context, const Backward& b) const override {
    for (size_t i = 0; i < b.dx.size(); ++i)
      if (b.dx[i])
        part(stream_of(context), x_[i].image, x_[i].start, channels_, b.dy.data<T>(), b.dx[i].data<T>(),
             b.into_dx(i) == Into::accumulate);
  }

 private:
  struct Input {
    Image image;
    Index start;
  };
  std::vector<Input> x_;
  Index channels_ = 0;  // of y
};

}  // namespace

KernelEntry concat_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                return Lowering{.x = std::vector<Layout>(x.size(), Layout::nhwc),
                                .y = Layout::nhwc,
                                .precision = precision,
                                .adds_dx = true};
              },
          .make = [](const Op&, std::span<const TensorSpec> x,
                     const Lowering&) { return make_typed<ConcatKernel>(x[0].dtype, x); }};
}

}  // namespace antichain::cuda
