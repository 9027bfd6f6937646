// Layer normalisation takes two launches forward: moments of the rows, and one pass over the elements. The
// channels of a pixel lie one behind the other in NHWC, so they are rows, too.
//
// As on the CPU, mean and variance are computed in double, and the error of rounding the mean to float is
// added back to x̂.
#include "layers/layer_norm.h"

#include <cmath>

#include "framework/cuda/passes.h"
#include "layers/cuda/moments.h"
#include "layers/cuda/normal.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/row_sums.h"
#include "layers/cuda/scratch.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

struct Rows {
  int64_t count, length;
  Rows(const LayerNorm& op, const Shape& x)
      : count(x.elements() / op.row(x).elements()), length(op.row(x).elements()) {
    index_of(x.elements());
  }
};

struct RowParams {
  const float *weight, *bias;  // nullptr: 1, 0
};

template <class T>
void take_moments(Stream stream, const Rows& rows, const T* x, double eps, bool centred,
                  const Normal& normal) {
  sum_rows<MomentsRun>(
      stream, rows.count, rows.length,
      [=] ANTICHAIN_DEVICE(MomentsRun & run, bool first, float number) { run.take(first, number); },
      [=] ANTICHAIN_DEVICE(Index r, const Moments& all) {
        const double mean = centred ? all.mean : 0;
        const double off = all.mean - mean;
        const double scale = 1 / sqrt(all.squares / all.n + off * off + eps);
        normal.mean[r] = float(mean);
        normal.scale[r] = float(scale);
        normal.shift[r] = float((double(float(mean)) - mean) * scale);
      },
      read(x));
}

template <class T>
void normalise(Stream stream, const Rows& rows, const T* x, T* y, const Normal& n, const RowParams& params) {
  const bool weighted = params.weight;
  for_channels(
      stream, rows.count, rows.length,
      [=] ANTICHAIN_DEVICE(float weight, float bias, float mean, float scale, float shift, float x_,
                           float& y_) {
        const float normed = (x_ - mean) * scale + shift;
        y_ = (weighted ? normed * weight : normed) + bias;
      },
      channel(params.weight), channel(params.bias), row(n.mean, rows.length), row(n.scale, rows.length),
      row(n.shift, rows.length), read(x), write(y));
}

// Holds, per row, the factors of dx = scale · dy · weight + (b · x̂ + c).
struct RowGradient {
  float *b, *c;
};

// With g = dy · weight, of which means are taken over a row of n numbers:
//   dx = (g − Σ g / n − x̂ · Σ (g · x̂) / n) / sqrt(variance + eps), without Σ g / n where it is not centred
template <class T>
void take_sums(Stream stream, const Rows& rows, const T* x, const T* dy, const Normal& n,
               const RowParams& params, bool centred, const RowGradient& gradient) {
  const bool weighted = params.weight;
  const double length = double(rows.length);
  sum_rows<PairRun>(
      stream, rows.count, rows.length,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float weight, float mean, float scale, float shift, float x_,
                           float dy_) {
        run.take(weighted ? dy_ * weight : dy_, (x_ - mean) * scale + shift);
      },
      [=] ANTICHAIN_DEVICE(Index r, const Pair& all) {
        const double share = double(n.scale[r]) / length;
        gradient.b[r] = float(-share * all.product);
        gradient.c[r] = centred ? float(-share * all.sum) : 0.0f;
      },
      channel(params.weight), row(n.mean, rows.length), row(n.scale, rows.length), row(n.shift, rows.length),
      read(x), read(dy));
}

template <class T>
void input_gradient(Stream stream, const Rows& rows, const T* x, const T* dy, T* dx, bool adds,
                    const Normal& n, const RowParams& params, const RowGradient& gradient) {
  const bool weighted = params.weight;
  for_channels(
      stream, rows.count, rows.length,
      [=] ANTICHAIN_DEVICE(float weight, float mean, float scale, float shift, float b, float c, float x_,
                           float dy_, float& dx_) {
        const float normed = (x_ - mean) * scale + shift;
        const float fresh = scale * (weighted ? dy_ * weight : dy_) + (b * normed + c);
        // A term of a sum is rounded for storage before it is added wherever it comes from another kernel, so
        // it has to be rounded here, too.
        dx_ = adds ? dx_ + float(T(fresh)) : fresh;
      },
      channel(params.weight), row(n.mean, rows.length), row(n.scale, rows.length), row(n.shift, rows.length),
      row(gradient.b, rows.length), row(gradient.c, rows.length), read(x), read(dy), into(dx, adds));
}

// Says where d(weight) and d(bias) go; nullptr: not wanted.
struct IntoParams {
  float *weight, *bias;
  bool adds;
};

template <class T>
void param_gradients(Stream stream, const Rows& rows, const T* x, const T* dy, const Normal& n,
                     const PixelParts& parts, const Partials<Pair>& partials, const IntoParams& to) {
  sum_channels<PairRun>(
      stream, parts, partials,
      [=] ANTICHAIN_DEVICE(PairRun & run, bool, float mean, float scale, float shift, float x_, float dy_) {
        run.take(dy_, (x_ - mean) * scale + shift);
      },
      [=] ANTICHAIN_DEVICE(Index c, const Pair& all) {
        if (to.weight) to.weight[c] = to.adds ? to.weight[c] + float(all.product) : float(all.product);
        if (to.bias) to.bias[c] = to.adds ? to.bias[c] + float(all.sum) : float(all.sum);
      },
      row(n.mean, rows.length), row(n.scale, rows.length), row(n.shift, rows.length), read(x), read(dy));
}

int64_t workspace_bytes(const Rows& rows) {
  const PixelParts parts(rows.count, rows.length);
  return 3 * Scratch::rounded(rows.count * int64_t(sizeof(float))) + Partials<Pair>::bytes(parts);
}

// The stash has the three arrays of `Normal`.
template <class T>
class LayerNormKernel : public Kernel {
 public:
  LayerNormKernel(const LayerNorm& op, const Shape& x)
      : eps_(double(op.options.eps)), centred_(op.options.centred), rows_(op, x) {}

  void forward(Context& context, const Forward& f) const override {
    Scratch scratch(context, workspace_bytes(rows_));
    const Normal normal = normal_at(
        f.stash.empty() ? scratch.take<float>(3 * rows_.count) : f.stash[0].data<float>(), rows_.count);
    const Stream stream = stream_of(context);
    take_moments(stream, rows_, f.x[0].data<T>(), eps_, centred_, normal);
    normalise(stream, rows_, f.x[0].data<T>(), f.y.data<T>(), normal, params_of(f.params));
  }

  void backward(Context& context, const Backward& b) const override {
    Scratch scratch(context, workspace_bytes(rows_));
    const Normal normal = normal_at(b.stash[0].data<float>(), rows_.count);
    const RowParams params = params_of(b.params);
    const T *x = b.x[0].data<T>(), *dy = b.dy.data<T>();
    const Stream stream = stream_of(context);
    if (!b.dx.empty() && b.dx[0]) {
      const RowGradient gradient{scratch.take<float>(rows_.count), scratch.take<float>(rows_.count)};
      take_sums(stream, rows_, x, dy, normal, params, centred_, gradient);
      input_gradient(stream, rows_, x, dy, b.dx[0].data<T>(), b.into_dx(0) == Into::accumulate, normal,
                     params, gradient);
    }
    const auto dw = [&](size_t i) { return i < b.dw.size() && b.dw[i] ? b.dw[i].data<float>() : nullptr; };
    if (!dw(0) && !dw(1)) return;
    const PixelParts parts(rows_.count, rows_.length);
    param_gradients(stream, rows_, x, dy, normal, parts, {scratch, parts},
                    {dw(0), dw(1), b.into == Into::accumulate});
  }

 private:
  static RowParams params_of(std::span<const Tensor> params) {
    return {params.empty() ? nullptr : params[0].data<float>(),
            params.size() < 2 ? nullptr : params[1].data<float>()};
  }

  const double eps_;
  const bool centred_;
  const Rows rows_;
};

}  // namespace

KernelEntry layer_norm_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const auto& norm = dynamic_cast<const LayerNorm&>(op);
                const Layout layout = norm.options.channels ? Layout::nhwc : Layout::plain;
                const Rows rows(norm, x[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .params = std::vector<Layout>(norm.infer(x).params.size(), Layout::plain),
                                .precision = precision,
                                .stash = {{.shape = {3, rows.count}}},
                                .keeps_x = true,
                                .adds_dx = true,
                                .workspace_bytes = workspace_bytes(rows)};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<LayerNormKernel>(x[0].dtype, dynamic_cast<const LayerNorm&>(op),
                                                   x[0].shape);
              }};
}

}  // namespace antichain::cuda
