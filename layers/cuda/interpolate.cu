// Interpolation computes a pack of y per thread. Backward gathers, per pack of x, the gradients of the pixels
// of y that read it, in row-major order; which rows and columns these are is searched once, for a table.
#include "layers/interpolate.h"

#include "framework/cuda/arrays.h"
#include "layers/cuda/image.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/one_layout.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

template <int width, class T>
void enlarge(Stream stream, const LineMaps& maps, const Image& x, const Image& y, const T* from, T* to) {
  for_each(stream, y.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width, image = y.image(i), c = y.channel(i);
    const Between r = maps.rows.at(y.row(i)), q = maps.columns.at(y.column(i));
    const auto load = [&](int64_t row, int64_t column, float* pack) {
      load_pack<width>(from + x.at(image, Index(row), Index(column), c), pack);
    };
    float first[width], second[width], above[width];
    load(r.first, q.first, first);
    if (!maps.rows.bilinear) return store_pack<width>(first, to + i);
    const float right = q.share, left = 1.0f - right;
    load(r.first, q.second, second);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) above[j] = left * first[j] + right * second[j];
    load(r.second, q.first, first);
    load(r.second, q.second, second);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) {
      const float below = left * first[j] + right * second[j];
      first[j] = (1.0f - r.share) * above[j] + r.share * below;
    }
    store_pack<width>(first, to + i);
  });
}

// Says which rows (or columns) of y read one of x: begin … end − 1.
struct Lines {
  Index begin, end;
};

// Searches the rows of x first, then the columns.
void find_lines(Stream stream, const LineMaps& maps, const Image& x, Lines* lines) {
  for_each(stream, x.height + x.width, [=] ANTICHAIN_DEVICE(Index i) {
    const LineMap& map = i < x.height ? maps.rows : maps.columns;
    const int64_t at = int64_t(i < x.height ? i : i - x.height);
    lines[i] = {Index(map.begin_of(at)), Index(map.end_of(at))};
  });
}

template <int width, class T>
void gather(Stream stream, const LineMaps& maps, const Image& x, const Image& y, const Lines* lines,
            const T* dy, T* dx, bool adds) {
  for_each(stream, x.elements() / width, [=] ANTICHAIN_DEVICE(Index p) {
    const Index i = p * width, row = x.row(i), column = x.column(i);
    const Lines rows = lines[row], columns = lines[x.height + column];
    float sum[width] = {}, pack[width];
    for (Index r = rows.begin; r < rows.end; ++r)
      for (Index q = columns.begin; q < columns.end; ++q) {
        const float share = maps.rows.weight(row, r) * maps.columns.weight(column, q);
        load_pack<width>(dy + y.at(x.image(i), r, q, x.channel(i)), pack);
        ANTICHAIN_UNROLL
        for (int j = 0; j < width; ++j) sum[j] += share * pack[j];
      }
    if (adds) load_pack<width>(dx + i, pack);
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j)  // a term of a sum is rounded for storage before it is added
      if (adds) sum[j] = pack[j] + float(T(sum[j]));
    store_pack<width>(sum, dx + i);
  });
}

int64_t bytes_of_lines(const Shape& x) { return Scratch::rounded((x[2] + x[3]) * int64_t(sizeof(Lines))); }

template <class T>
class InterpolateKernel : public Kernel {
 public:
  InterpolateKernel(const Interpolate& op, const Shape& x)
      : maps_(line_maps(op, x)), x_(x), y_(op.infer({&x, 1}).y.shape), bytes_(bytes_of_lines(x)) {}

  void forward(Context& context, const Forward& f) const override {
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    in_channel_packs<T>(
        x_.channels, [&]<int width>() { enlarge<width>(stream_of(context), maps_, x_, y_, x, y); }, x, y);
  }
  void backward(Context& context, const Backward& b) const override {
    if (b.dx.empty() || !b.dx[0]) return;
    const T* dy = b.dy.data<T>();
    T* dx = b.dx[0].data<T>();
    const bool adds = b.into_dx(0) == Into::accumulate;
    Scratch scratch(context, bytes_);
    Lines* const lines = scratch.take<Lines>(x_.height + x_.width);
    find_lines(stream_of(context), maps_, x_, lines);
    const auto run = [&]<int width>() {
      gather<width>(stream_of(context), maps_, x_, y_, lines, dy, dx, adds);
    };
    in_channel_packs<T>(x_.channels, run, dx, dy);
  }

 private:
  const LineMaps maps_;
  const Image x_, y_;
  const int64_t bytes_;
};

}  // namespace

KernelEntry interpolate_entry() {
  return {.lower =
              [](const Op&, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                Lowering lowering = in_one_layout(Layout::nhwc, precision);
                lowering.workspace_bytes = bytes_of_lines(x[0]);
                return lowering;
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<InterpolateKernel>(x[0].dtype, static_cast<const Interpolate&>(op),
                                                     x[0].shape);
              }};
}

}  // namespace antichain::cuda
