// Layer normalisation processes tiles of 16 rows: a tile is read for the mean, for the deviations from it and
// for the result, the second and third time from the cache. The loops are in layer_norm_loops.
//
// Mean and variance are computed in double, and the error of rounding the mean to float is added back to x̂.
// Sums over rows (the gradients of weight and bias) are formed in parts that depend on the shape alone: 16
// rows in float32, a part in double, then all parts in their order. So neither the number of threads nor the
// half of backward that is asked for changes a bit.
#include "layers/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/layer_norm_loops.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

// Says where the rows of a tensor lie: `rows` in each of `images`, cut into tiles.
struct Tiles {
  Rows place;
  int64_t images, rows, image;  // image: elements from an image to the next

  Tiles(const LayerNorm& op, const TensorSpec& x) {
    place.length = op.row(x.shape).elements();
    if (op.options.channels) {
      const Activation a(x);
      place.row = a.block;
      place.vector = 16 / a.block * a.plane();
      place.half = a.block == 16 ? 8 : a.plane();
      images = a.images;
      rows = a.pixels();
      image = a.blocks * a.plane();
    } else {
      place.row = place.length;
      place.vector = 16;
      place.half = 8;
      images = 1;
      rows = x.shape.elements() / place.length;
      image = 0;
    }
    place.blocked = op.options.channels;
  }

  int64_t per_image() const { return (rows + rows_of_tile - 1) / rows_of_tile; }
  int64_t count() const { return images * per_image(); }
  int64_t all_rows() const { return images * rows; }
  // Returns how many numbers a row has in whole vectors.
  int64_t padded() const { return (place.length + 15) / 16 * 16; }
  // Returns into how many parts the sums over rows are cut.
  int64_t parts() const { return std::min<int64_t>(count(), 32); }
};

struct Tile {
  int64_t at, first, rows;  // the tile's first element, its first row, its number of rows
  Tile(const Tiles& all, int64_t number) {
    const int64_t image = number / all.per_image(), row = number % all.per_image() * rows_of_tile;
    at = image * all.image + row * all.place.row;
    first = image * all.rows + row;
    rows = std::min(rows_of_tile, all.rows - row);
  }
};

template <class T>
class LayerNormKernel : public Kernel {
 public:
  LayerNormKernel(const LayerNorm& op, const TensorSpec& x)
      : options_(op.options), all_(op, x), loops_(best_loops<LayerNormLoops<T>>()) {}

  static int64_t workspace_bytes(const Tiles& all) {
    return 2 * Workspace::rounded(all.padded() * int64_t(sizeof(float))) +
           Workspace::rounded(all.parts() * 2 * all.padded() * int64_t(sizeof(double)));
  }

  void forward(Context& context, const Forward& f) const override {
    Workspace workspace(context, workspace_bytes(all_));
    const float* weight = in_vectors(workspace, f.params, 0, 1);
    const float* bias = in_vectors(workspace, f.params, 1, 0);
    const T* x = f.x[0].data<T>();
    T* y = f.y.data<T>();
    for_each_plane(all_.count(), context.threads(), [&](int64_t number) {
      const Tile tile(all_, number);
      double mean[rows_of_tile], squares[rows_of_tile];
      loops_.moments(x + tile.at, all_.place, tile.rows, mean, squares);
      RowNormals normal;
      for (int64_t r = 0; r < tile.rows; ++r) {
        const double variance = std::max(squares[r], 0.0) / double(all_.place.length);
        if (!options_.centred) {
          normal.mean[r] = normal.shift[r] = 0;
          normal.scale[r] = float(1 / std::sqrt(variance + mean[r] * mean[r] + double(options_.eps)));
          continue;
        }
        const double scale = 1 / std::sqrt(variance + double(options_.eps));
        normal.mean[r] = float(mean[r]);
        normal.scale[r] = float(scale);
        normal.shift[r] = float((double(normal.mean[r]) - mean[r]) * scale);
      }
      if (!f.stash.empty()) stash(f.stash[0], tile, normal);
      loops_.normalise(x + tile.at, y + tile.at, all_.place, tile.rows, normal, weight, bias);
    });
  }

  void backward(Context& context, const Backward& b) const override {
    Workspace workspace(context, workspace_bytes(all_));
    const float* weight = in_vectors(workspace, b.params, 0, 1);
    const auto wanted = [](const Tensor& t) { return bool(t); };
    const bool columns = std::any_of(b.dw.begin(), b.dw.end(), wanted);
    const int64_t per_part = 2 * all_.padded(), parts = all_.parts();
    double* sums = nullptr;
    if (columns) sums = take<double>(workspace, parts * per_part);
    for_each_plane(parts, context.threads(), [&](int64_t part) {
      double* of_part = columns ? sums + part * per_part : nullptr;
      if (columns) std::fill_n(of_part, per_part, 0.0);
      for (int64_t n = part * all_.count() / parts; n < (part + 1) * all_.count() / parts; ++n)
        backward(Tile(all_, n), b, weight, of_part);
    });
    if (!columns) return;
    for (int64_t part = 1; part < parts; ++part)
      for (int64_t i = 0; i < per_part; ++i) sums[i] += sums[part * per_part + i];
    fold(b, 0, sums + all_.padded());
    fold(b, 1, sums);
  }

 private:
  template <class Number>
  static Number* take(Workspace& workspace, int64_t count) {
    return reinterpret_cast<Number*>(workspace.take(count * int64_t(sizeof(Number))));
  }

  // Returns a parameter in whole vectors, or `otherwise` for each number where the operator has none.
  const float* in_vectors(Workspace& workspace, std::span<const Tensor> params, size_t i,
                          float otherwise) const {
    float* to = take<float>(workspace, all_.padded());
    std::fill_n(to, all_.padded(), otherwise);
    if (i < params.size()) std::copy_n(params[i].data<float>(), all_.place.length, to);
    return to;
  }

  void stash(const Tensor& stash, const Tile& tile, const RowNormals& n) const {
    float* to = stash.data<float>() + tile.first;
    for (const float* from : {n.mean, n.scale, n.shift}) {
      std::copy_n(from, tile.rows, to);
      to += all_.all_rows();
    }
  }

  RowNormals stashed(const Tensor& stash, const Tile& tile) const {
    RowNormals n;
    const float* from = stash.data<float>() + tile.first;
    for (float* to : {n.mean, n.scale, n.shift}) {
      std::copy_n(from, tile.rows, to);
      from += all_.all_rows();
    }
    return n;
  }

  // With g = dy · weight, of which means are taken over a row of n numbers:
  //   dx = (g − Σ g / n − x̂ · Σ (g · x̂) / n) / sqrt(variance + eps); not centred: without Σ g / n
  // `columns`: where the sums for bias and weight go, or nullptr.
  void backward(const Tile& tile, const Backward& b, const float* weight, double* columns) const {
    const RowNormals normal = stashed(b.stash[0], tile);
    const T *x = b.x[0].data<T>() + tile.at, *dy = b.dy.data<T>() + tile.at;
    if (columns) loops_.columns(x, dy, all_.place, tile.rows, normal, columns, columns + all_.padded());
    if (b.dx.empty() || !b.dx[0]) return;
    double sum[rows_of_tile], product[rows_of_tile];
    loops_.sums(x, dy, all_.place, tile.rows, normal, weight, sum, product);
    RowGradients g;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const double share = double(normal.scale[r]) / double(all_.place.length);
      g.a[r] = normal.scale[r];
      g.b[r] = float(-share * product[r]);
      g.c[r] = options_.centred ? float(-share * sum[r]) : 0;
    }
    loops_.gradient(x, dy, b.dx[0].data<T>() + tile.at, b.into_dx(0) == Into::accumulate, all_.place,
                    tile.rows, normal, g, weight);
  }

  void fold(const Backward& b, size_t param, const double* sums) const {
    if (param >= b.dw.size() || !b.dw[param]) return;
    float* dw = b.dw[param].data<float>();
    for (int64_t i = 0; i < all_.place.length; ++i)
      dw[i] = b.into == Into::overwrite ? float(sums[i]) : dw[i] + float(sums[i]);
  }

  const LayerNormOptions options_;
  const Tiles all_;
  const LayerNormLoops<T>& loops_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
  const auto& norm = dynamic_cast<const LayerNorm&>(op);
  // The channels of a pixel lie together only in blocks.
  const bool blocks = offered[0] == Layout::nChw8c || offered[0] == Layout::nChw16c;
  const Layout layout = !norm.options.channels ? Layout::plain : blocks ? offered[0] : blocked();
  const Tiles all(norm, {x[0], DType::f32, layout});
  return {.x = {layout},
          .y = layout,
          .params = std::vector<Layout>(norm.infer(x).params.size(), Layout::plain),
          .precision = precision,
          .stash = {{.shape = {3, all.all_rows()}}},  // mean, scale, shift
          .keeps_x = true,
          .adds_dx = true,
          .workspace_bytes = LayerNormKernel<float>::workspace_bytes(all)};
}

}  // namespace

KernelEntry layer_norm_entry() {
  return {.lower = lower, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<LayerNormKernel>(x[0].dtype, dynamic_cast<const LayerNorm&>(op), x[0]);
          }};
}

}  // namespace antichain::cpu
