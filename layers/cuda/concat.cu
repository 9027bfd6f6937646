// Joins channels: each input has one run of channels in every pixel of y. They move in packs where the runs
// are made of whole packs.
#include "layers/concat.h"

#include "framework/cuda/arrays.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// A Run is one input's part: its channels begin at `start` of y's `channels`.
struct Run {
  Image x;
  Index start, channels;

  ANTICHAIN_ANYWHERE Index in_y(Index i) const { return i / x.channels * channels + start + x.channel(i); }

  // Returns whether the run is made of whole packs of T.
  template <class T>
  bool fits(const T* of_x, const T* of_y) const {
    constexpr Index width = pack_bytes / sizeof(T);
    return x.channels % width == 0 && start % width == 0 && channels % width == 0 &&
           aligned<width>(read(of_x), read(of_y));
  }
};

template <int width, class T>
void join(Stream stream, const Run& run, const T* from, T* y) {
  for_each(stream, run.x.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    float pack[width];
    load_pack<width>(from + p * width, pack);
    store_pack<width>(pack, y + run.in_y(p * width));
  });
}

template <int width, class T>
void part(Stream stream, const Run& run, const T* dy, T* dx, bool adds) {
  for_each(stream, run.x.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    float pack[width], sum[width];
    load_pack<width>(dy + run.in_y(p * width), pack);
    if (adds) load_pack<width>(dx + p * width, sum);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) pack[j] = adds ? sum[j] + pack[j] : pack[j];
    store_pack<width>(pack, dx + p * width);
  });
}

template <class T>
class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(std::span<const TensorSpec> x) {
    Index channels = 0;  // of y
    for (const TensorSpec& spec : x) {
      runs_.push_back({Image(spec.shape), channels, 0});
      channels += index_of(spec.shape[1]);
    }
    for (Run& run : runs_) run.channels = channels;
  }

  void forward(Context& context, const Forward& f) const override {
    T* y = f.y.data<T>();
    for (size_t i = 0; i < runs_.size(); ++i) {
      const T* x = f.x[i].data<T>();
      in_packs<T>(runs_[i].fits(x, y), [&]<int width>() { join<width>(stream_of(context), runs_[i], x, y); });
    }
  }

  void backward(Context& context, const Backward& b) const override {
    const T* dy = b.dy.data<T>();
    for (size_t i = 0; i < b.dx.size(); ++i) {
      if (!b.dx[i]) continue;
      T* dx = b.dx[i].data<T>();
      in_packs<T>(runs_[i].fits(dx, dy), [&]<int width>() {
        part<width>(stream_of(context), runs_[i], dy, dx, b.into_dx(i) == Into::accumulate);
      });
    }
  }

 private:
  std::vector<Run> runs_;
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
