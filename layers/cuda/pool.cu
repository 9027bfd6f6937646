// Max pooling stashes, per output element, which pixel of its window was the first largest. Backward of max
// and average pooling gathers: each pixel adds up the windows that chose or contain it, in row-major order,
// so nothing is scattered and every sum has one order. (cuDNN's plain max pooling scatters with atomics.)
#include "layers/pool.h"

#include "framework/cuda/arrays.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Side {  // of a window's slide along one side of the image
  int kernel, stride, pad, in, out;

  // Returns output o's first pixel in the image; the window itself may begin before it and end behind it.
  ANTICHAIN_ANYWHERE int first(int o) const { return o * stride - pad; }
  ANTICHAIN_ANYWHERE int begin(int o) const { return first(o) < 0 ? 0 : first(o); }
  ANTICHAIN_ANYWHERE int end(int o) const { return first(o) + kernel < in ? first(o) + kernel : in; }
  ANTICHAIN_ANYWHERE int padded(int o) const {  // its extent, cut off at the padded image
    return (first(o) + kernel < in + pad ? first(o) + kernel : in + pad) - first(o);
  }
  // The outputs lowest … highest have windows that contain pixel i.
  ANTICHAIN_ANYWHERE int lowest(int i) const {
    const int from = i + pad - kernel + 1;
    return from <= 0 ? 0 : (from + stride - 1) / stride;
  }
  ANTICHAIN_ANYWHERE int highest(int i) const {
    const int last = (i + pad) / stride;
    return last < out ? last : out - 1;
  }
};

struct Window {
  Image x, y;
  Side rows, columns;
  bool count_include_pad;

  // Returns the weight of each pixel of output (r, q) in an average.
  ANTICHAIN_ANYWHERE float share(int r, int q) const {
    const int padded = rows.padded(r) * columns.padded(q);
    const int real = (rows.end(r) - rows.begin(r)) * (columns.end(q) - columns.begin(q));
    return 1.0f / float(count_include_pad ? padded : real);
  }
};

// Each thread takes a pack of channels of a pixel, so that its window is computed once for all of them.
template <int width, class T>
void max_pool(Stream stream, const Window& w, const T* from, T* to, uint8_t* at) {
  for_each(stream, w.y.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width;
    const int r = int(w.y.row(i)), q = int(w.y.column(i));
    float best[width] = {};
    Pack<width, uint8_t> where = {};
    bool first = true;
    for (int row = w.rows.begin(r); row < w.rows.end(r); ++row)
      for (int column = w.columns.begin(q); column < w.columns.end(q); ++column) {
        float pixel[width];
        load_pack<width>(from + w.x.at(w.y.image(i), Index(row), Index(column), w.y.channel(i)), pixel);
        const int me = (row - w.rows.first(r)) * w.columns.kernel + column - w.columns.first(q);
        ANTICHAIN_UNROLL
        for (int j = 0; j < width; ++j) {
          if (!first && !(pixel[j] > best[j]) && pixel[j] == pixel[j]) continue;  // NaN wins, to be seen
          best[j] = pixel[j];
          where.numbers[j] = uint8_t(me);
        }
        first = false;
      }
    store_pack<width>(best, to + i);
    if (at) *reinterpret_cast<Pack<width, uint8_t>*>(at + i) = where;
  });
}

template <int width, class T>
void max_pool_gradient(Stream stream, const Window& w, const uint8_t* at, const T* dy, T* dx) {
  for_each(stream, w.x.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width;
    const int row = int(w.x.row(i)), column = int(w.x.column(i));
    float sum[width] = {};
    for (int r = w.rows.lowest(row); r <= w.rows.highest(row); ++r)
      for (int q = w.columns.lowest(column); q <= w.columns.highest(column); ++q) {
        const Index out = w.y.at(w.x.image(i), Index(r), Index(q), w.x.channel(i));
        const int me = (row - w.rows.first(r)) * w.columns.kernel + column - w.columns.first(q);
        const Pack<width, uint8_t> chosen = *reinterpret_cast<const Pack<width, uint8_t>*>(at + out);
        float gradient[width];
        load_pack<width>(dy + out, gradient);
        ANTICHAIN_UNROLL
        for (int j = 0; j < width; ++j)
          if (chosen.numbers[j] == me) sum[j] += gradient[j];
      }
    store_pack<width>(sum, dx + i);
  });
}

template <int width, class T>
void average_pool(Stream stream, const Window& w, const T* from, T* to) {
  for_each(stream, w.y.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width;
    const int r = int(w.y.row(i)), q = int(w.y.column(i));
    float sum[width] = {};
    for (int row = w.rows.begin(r); row < w.rows.end(r); ++row)
      for (int column = w.columns.begin(q); column < w.columns.end(q); ++column) {
        float pixel[width];
        load_pack<width>(from + w.x.at(w.y.image(i), Index(row), Index(column), w.y.channel(i)), pixel);
        ANTICHAIN_UNROLL
        for (int j = 0; j < width; ++j) sum[j] += pixel[j];
      }
    const float share = w.share(r, q);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) sum[j] *= share;
    store_pack<width>(sum, to + i);
  });
}

template <int width, class T>
void average_pool_gradient(Stream stream, const Window& w, const T* dy, T* dx) {
  for_each(stream, w.x.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width;
    const int row = int(w.x.row(i)), column = int(w.x.column(i));
    float sum[width] = {};
    for (int r = w.rows.lowest(row); r <= w.rows.highest(row); ++r)
      for (int q = w.columns.lowest(column); q <= w.columns.highest(column); ++q) {
        float gradient[width];
        load_pack<width>(dy + w.y.at(w.x.image(i), Index(r), Index(q), w.x.channel(i)), gradient);
        const float share = w.share(r, q);
        ANTICHAIN_UNROLL
        for (int j = 0; j < width; ++j) sum[j] += gradient[j] * share;
      }
    store_pack<width>(sum, dx + i);
  });
}

Window window_of(const Pool& op, const Shape& x) {
  const PoolOptions& o = op.options;
  const Shape y = op.infer({&x, 1}).y.shape;
  return {.x = Image(x),
          .y = Image(y),
          .rows = {o.kernel.h, o.stride.h, o.pad.h, int(x[2]), int(y[2])},
          .columns = {o.kernel.w, o.stride.w, o.pad.w, int(x[3]), int(y[3])},
          .count_include_pad = o.count_include_pad};
}

template <class T>
class MaxPoolKernel : public Kernel {
 public:
  explicit MaxPoolKernel(const Window& window) : window_(window) {}
  void forward(Context& context, const Forward& f) const override {
    const bool stashes = f.mode == Mode::train && !f.stash.empty();
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    uint8_t* at = stashes ? f.stash[0].data<uint8_t>() : nullptr;
    in_channel_packs<T>(
        window_.x.channels, [&]<int width>() { max_pool<width>(stream_of(context), window_, x, y, at); }, x,
        y, at);
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    const uint8_t* at = b.stash[0].data<uint8_t>();
    in_channel_packs<T>(
        window_.x.channels,
        [&]<int width>() { max_pool_gradient<width>(stream_of(context), window_, at, dy, dx); }, dx, dy, at);
  }

 private:
  const Window window_;
};

template <class T>
class AveragePoolKernel : public Kernel {
 public:
  explicit AveragePoolKernel(const Window& window) : window_(window) {}
  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    in_channel_packs<T>(
        window_.x.channels, [&]<int width>() { average_pool<width>(stream_of(context), window_, x, y); }, x,
        y);
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    in_channel_packs<T>(
        window_.x.channels,
        [&]<int width>() { average_pool_gradient<width>(stream_of(context), window_, dy, dx); }, dx, dy);
  }

 private:
  const Window window_;
};

Lowering lower_max_pool(const Op& op, std::span<const Shape> x, std::span<const Layout>,
                        Precision precision) {
  const PoolOptions& o = static_cast<const Pool&>(op).options;
  if (o.kernel.h * o.kernel.w > 256)
    throw Error(op.str() + " has a window of more than the 256 pixels the cuda engine can number");
  Lowering lowering{.x = {Layout::nhwc}, .y = Layout::nhwc, .precision = precision};
  lowering.stash.push_back({.shape = op.infer(x).y.shape, .dtype = DType::u8, .layout = Layout::nhwc});
  return lowering;
}

template <template <class> class PoolKernelFor>
std::unique_ptr<Kernel> make_pool(const Op& op, std::span<const TensorSpec> x, const Lowering&) {
  return make_typed<PoolKernelFor>(x[0].dtype, window_of(static_cast<const Pool&>(op), x[0].shape));
}

}  // namespace

KernelEntry max_pool_entry() { return {.lower = lower_max_pool, .make = make_pool<MaxPoolKernel>}; }

KernelEntry average_pool_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape>, std::span<const Layout>, Precision precision) {
                return Lowering{.x = {Layout::nhwc}, .y = Layout::nhwc, .precision = precision};
              },
          .make = make_pool<AveragePoolKernel>};
}

}  // namespace antichain::cuda
