// Group normalisation forms the moments of every channel of every image and merges those of a group; the
// loops are batch norm's, over one image at a time. So any layout will do, and groups need not fill blocks of
// channels.
//
// Numbers that exist once per channel or group are computed in double, as in batch norm. A thread processes
// whole images; the gradients of weight and bias are added up over images in their order.
#include "layers/group_norm.h"

#include <algorithm>
#include <cmath>

#include "layers/cpu/activation.h"
#include "layers/cpu/batch_norm_loops.h"
#include "layers/cpu/dnnl.h"
#include "layers/cpu/light_kernels.h"

namespace antichain::cpu {
namespace {

constexpr int64_t most_channels = 16;  // of a block

// Sizes of a tensor N x C x …, in blocks of channels.
struct Sizes {
  int64_t images, channels, groups, pixels, block;

  Sizes(int64_t groups, const TensorSpec& x)
      : images(x.shape[0]),
        channels(x.shape[1]),
        groups(groups),
        pixels(x.shape.elements() / images / channels),
        block(Activation::block_of(x.layout)) {}

  int64_t plane() const { return pixels * block; }
  int64_t image() const { return (channels + block - 1) / block * plane(); }
  int64_t group_of(int64_t channel) const { return channel / (channels / groups); }
  double per_group() const { return double(channels / groups * pixels); }
};

// What one image's groups have: x̂ = (x − mean) · inverse.
struct Statistics {
  const double *mean, *variance;
};

template <class T>
class GroupNormKernel : public Kernel {
 public:
  GroupNormKernel(const GroupNormOptions& options, const TensorSpec& x)
      : options_(options),
        x_(options.groups, x),
        planes_{.images = 1, .stride = x_.plane(), .size = x_.plane(), .block = int(x_.block)},
        loops_(best_loops<BatchNormLoops<T>>()) {}

  // Two numbers per channel of each image, and two per group.
  static int64_t workspace_bytes(const Sizes& x) {
    return Workspace::rounded(2 * x.images * (x.channels + x.groups) * int64_t(sizeof(double)));
  }

  void forward(Context& context, const Forward& f) const override {
    Room room(context, x_);
    for_each_plane(x_.images, context.threads(), [&](int64_t n) {
      double *mean = room.of_groups(n), *variance = mean + x_.groups;
      const T* x = f.x[0].data<T>() + n * x_.image();
      take_moments(x, room.of_channels(n), mean, variance);
      if (!f.stash.empty()) std::copy_n(mean, 2 * x_.groups, f.stash[0].data<double>() + n * 2 * x_.groups);
      for_each_block([&](int64_t first, int64_t count, int64_t at) {
        const ForwardPass<T> pass{.x = x + at,
                                  .residual = nullptr,
                                  .y = f.y.data<T>() + n * x_.image() + at,
                                  .after = After::nothing};
        loops_.normalise(pass, planes_, normal(first, count, {mean, variance}, f.params));
      });
    });
  }

  void backward(Context& context, const Backward& b) const override {
    Room room(context, x_);
    for_each_plane(x_.images, context.threads(), [&](int64_t n) { backward(n, b, room); });
    for (size_t param = 0; param < b.dw.size(); ++param) {
      if (!b.dw[param]) continue;
      for (int64_t c = 0; c < x_.channels; ++c) {
        double all = 0;
        for (int64_t n = 0; n < x_.images; ++n)
          all += room.of_channels(n)[(1 - int64_t(param)) * x_.channels + c];
        float& dw = b.dw[param].data<float>()[c];
        dw = b.into == Into::overwrite ? float(all) : dw + float(all);
      }
    }
  }

 private:
  // The workspace: two rows of doubles per image, for its channels and for its groups.
  struct Room {
    double* at;
    const Sizes& x;
    Room(Context& context, const Sizes& sizes)
        : at(reinterpret_cast<double*>(context.workspace(workspace_bytes(sizes)))), x(sizes) {}
    double* of_channels(int64_t image) const { return at + image * 2 * x.channels; }
    double* of_groups(int64_t image) const { return of_channels(x.images) + image * 2 * x.groups; }
  };

  // Calls f(first channel, number of channels, first element within the image) for every block.
  template <class F>
  void for_each_block(F&& f) const {
    for (int64_t first = 0; first < x_.channels; first += x_.block)
      f(first, std::min(x_.block, x_.channels - first), first * x_.pixels);
  }

  void set(Lanes& lanes, int64_t channel, double value) const {
    for (int64_t l = channel; l < most_channels; l += x_.block) lanes.at[l] = float(value);
  }

  double inverse(double variance) const { return 1 / std::sqrt(variance + double(options_.eps)); }
  double weight(std::span<const Tensor> params, int64_t channel) const {
    return params.empty() ? 1.0 : double(params[0].data<float>()[channel]);
  }

  // Channels of a group have equally many pixels: the group's mean is that of their means, and a channel adds
  // its squares and those of its mean's distance.
  void take_moments(const T* x, double* of_channels, double* mean, double* variance) const {
    double *means = of_channels, *squares = of_channels + x_.channels;
    for_each_block([&](int64_t first, int64_t count, int64_t at) {
      double its_mean[most_channels], its_squares[most_channels];
      loops_.moments(x + at, planes_, its_mean, its_squares);
      std::copy_n(its_mean, count, means + first);
      std::copy_n(its_squares, count, squares + first);
    });
    std::fill_n(mean, 2 * x_.groups, 0.0);
    for (int64_t c = 0; c < x_.channels; ++c)
      mean[x_.group_of(c)] += means[c] * double(x_.pixels) / x_.per_group();
    for (int64_t c = 0; c < x_.channels; ++c) {
      const double distance = means[c] - mean[x_.group_of(c)];
      variance[x_.group_of(c)] += (squares[c] + double(x_.pixels) * distance * distance) / x_.per_group();
    }
  }

  Normal normal(int64_t first, int64_t count, const Statistics& s, std::span<const Tensor> params) const {
    Normal n;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t group = x_.group_of(first + i);
      const double mean = s.mean[group], scale = weight(params, first + i) * inverse(s.variance[group]);
      set(n.mean, i, mean);
      set(n.scale, i, scale);
      const double bias = params.empty() ? 0.0 : double(params[1].data<float>()[first + i]);
      set(n.shift, i, bias + (double(float(mean)) - mean) * scale);
    }
    return n;
  }

  // With g = dy · weight, of which means are taken over a group of n numbers:
  //   dx = (g − Σ g / n − x̂ · Σ (g · x̂) / n) / sqrt(variance + eps)
  // It leaves Σ dy and Σ (dy · x̂) of every channel in the workspace.
  void backward(int64_t n, const Backward& b, const Room& room) const {
    const double* mean = b.stash[0].data<double>() + n * 2 * x_.groups;
    const Statistics s{mean, mean + x_.groups};
    double *sums = room.of_channels(n), *products = sums + x_.channels;
    double *group_sums = room.of_groups(n), *group_products = group_sums + x_.groups;
    std::fill_n(group_sums, 2 * x_.groups, 0.0);
    for_each_block([&](int64_t first, int64_t count, int64_t at) {
      double sum[most_channels], product[most_channels];
      loops_.sums(pass_of(n, at, b), planes_, normal(first, count, s, b.params), sum, product);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t c = first + i, group = x_.group_of(c);
        sums[c] = sum[i];
        products[c] = (product[i] + off(s.mean[group]) * sum[i]) * inverse(s.variance[group]);
        group_sums[group] += weight(b.params, c) * sums[c];
        group_products[group] += weight(b.params, c) * products[c];
      }
    });
    if (b.dx.empty() || !b.dx[0]) return;
    for_each_block([&](int64_t first, int64_t count, int64_t at) {
      Gradient g;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t group = x_.group_of(first + i);
        const double scale = inverse(s.variance[group]);
        const double slope = -scale * scale * group_products[group] / x_.per_group();
        set(g.a, i, weight(b.params, first + i) * scale);
        set(g.b, i, slope);
        set(g.c, i, slope * off(s.mean[group]) - scale * group_sums[group] / x_.per_group());
      }
      loops_.gradient(pass_of(n, at, b), planes_, normal(first, count, s, b.params), g);
    });
  }

  static double off(double mean) { return double(float(mean)) - mean; }

  BackwardPass<T> pass_of(int64_t image, int64_t at, const Backward& b) const {
    const int64_t from = image * x_.image() + at;
    BackwardPass<T> pass{};
    pass.x = b.x[0].data<T>() + from;
    pass.dy = b.dy.data<T>() + from;
    if (!b.dx.empty() && b.dx[0]) {
      pass.dx = b.dx[0].data<T>() + from;
      pass.add_dx = b.into_dx(0) == Into::accumulate;
    }
    pass.mask = Mask::none;
    return pass;
  }

  const GroupNormOptions options_;
  const Sizes x_;
  const Planes planes_;
  const BatchNormLoops<T>& loops_;
};

Lowering lower(const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision precision) {
  const GroupNormOptions& options = dynamic_cast<const GroupNorm&>(op).options;
  const Layout layout = accept(offered[0]);
  const Sizes sizes(options.groups, {x[0], DType::f32, layout});
  return {.x = {layout},
          .y = layout,
          .params = std::vector<Layout>(options.affine ? 2 : 0, Layout::plain),
          .precision = precision,
          .stash = {{.shape = {x[0][0], 2, options.groups}, .dtype = DType::f64}},  // mean, variance
          .keeps_x = true,
          .adds_dx = true,
          .workspace_bytes = GroupNormKernel<float>::workspace_bytes(sizes)};
}

}  // namespace

KernelEntry group_norm_entry() {
  return {.lower = lower, .make = [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
            return make_typed<GroupNormKernel>(x[0].dtype, dynamic_cast<const GroupNorm&>(op).options, x[0]);
          }};
}

}  // namespace antichain::cpu
