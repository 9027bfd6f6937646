// Group normalisation folds the pixels of every channel of every image, twice for the variance, merges the
// channels of a group, and passes over the elements once. All sums are formed in double.
#include "layers/group_norm.h"

#include <cmath>

#include "layers/cuda/moments.h"
#include "layers/cuda/normal.h"
#include "layers/cuda/operators.h"
#include "layers/cuda/scratch.h"
#include "layers/cuda/sums.h"
#include "layers/typed.h"

namespace antichain::cuda {
namespace {

// A tensor is N x C x …, and a `place` is a channel of an image, numbered n · channels + c.
struct GroupSizes {
  Index images, channels, groups, pixels;
  Index pixel, channel;  // elements from a pixel to the next, from a channel to the next

  GroupSizes(int64_t groups, const Shape& x)
      : images(index_of(x[0])), channels(index_of(x[1])), groups(index_of(groups)) {
    pixels = index_of(x.elements() / x[0] / x[1]);
    const bool nhwc = layout_of(x) == Layout::nhwc;
    pixel = nhwc ? channels : 1;
    channel = nhwc ? 1 : pixels;
    index_of(x.elements());
  }

  int64_t places() const { return int64_t(images) * channels; }
  int64_t all_groups() const { return int64_t(images) * groups; }
  int64_t elements() const { return places() * pixels; }
  ANTICHAIN_ANYWHERE Index group_size() const { return channels / groups; }  // channels
  ANTICHAIN_ANYWHERE double per_group() const { return double(group_size()) * double(pixels); }
  ANTICHAIN_ANYWHERE Index group_of(Index place) const { return place / group_size(); }  // of all images
  ANTICHAIN_ANYWHERE Index at(Index place, Index p) const {
    return place / channels * channels * pixels + place % channels * channel + p * pixel;
  }
  ANTICHAIN_ANYWHERE Index place_of(Index element) const {
    return element / (channels * pixels) * channels + element / channel % channels;
  }
};

struct Params {
  const float *weight, *bias;  // nullptr: 1, 0
  ANTICHAIN_ANYWHERE float weight_of(Index channel) const { return weight ? weight[channel] : 1.0f; }
  ANTICHAIN_ANYWHERE float bias_of(Index channel) const { return bias ? bias[channel] : 0.0f; }
};

// Holds, per group of each image, mean and variance.
struct Statistics {
  double *mean, *variance;
};

// Computes to[group] = Σ of[place] / n over each group.
void merge(Stream stream, const GroupSizes& s, const double* of, double* to) {
  for_each(stream, s.all_groups(), [=] ANTICHAIN_DEVICE(Index group) {
    double all = 0;
    for (Index c = 0; c < s.group_size(); ++c) all += of[group * s.group_size() + c];
    to[group] = all / s.per_group();
  });
}

template <class T>
void take_statistics(Stream stream, const GroupSizes& s, const T* x, double* of_places,
                     const Statistics& to) {
  fold<Sum>(
      stream, s.pixels, s.places(),
      [=] ANTICHAIN_DEVICE(Index p, Index place) { return Sum{double(float(x[s.at(place, p)]))}; },
      [=] ANTICHAIN_DEVICE(Index place, const Sum& all) { of_places[place] = all.value; });
  merge(stream, s, of_places, to.mean);
  fold<Sum>(
      stream, s.pixels, s.places(),
      [=] ANTICHAIN_DEVICE(Index p, Index place) {
        const double distance = double(float(x[s.at(place, p)])) - to.mean[s.group_of(place)];
        return Sum{distance * distance};
      },
      [=] ANTICHAIN_DEVICE(Index place, const Sum& all) { of_places[place] = all.value; });
  merge(stream, s, of_places, to.variance);
}

void set_normal(Stream stream, const GroupSizes& s, const Statistics& statistics, double eps,
                const Params& params, const Normal& normal) {
  for_each(stream, s.places(), [=] ANTICHAIN_DEVICE(Index place) {
    const Index channel = place % s.channels, group = s.group_of(place);
    normal.set(place, statistics.mean[group], statistics.variance[group], eps, params.weight_of(channel),
               params.bias_of(channel));
  });
}

template <class T>
void normalise(Stream stream, const GroupSizes& s, const T* x, T* y, const Normal& n) {
  for_each(stream, s.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index place = s.place_of(i);
    y[i] = T((float(x[i]) - n.mean[place]) * n.scale[place] + n.shift[place]);
  });
}

// Σ dy and Σ (dy · x̂) of every place.
struct Sums {
  double *sum, *product;
};

template <class T>
void take_sums(Stream stream, const GroupSizes& s, const T* x, const T* dy, const Statistics& statistics,
               double eps, const Sums& to) {
  fold<Pair>(
      stream, s.pixels, s.places(),
      [=] ANTICHAIN_DEVICE(Index p, Index place) {
        const Index i = s.at(place, p), group = s.group_of(place);
        const double gradient = double(float(dy[i]));
        const double normed =
            (double(float(x[i])) - statistics.mean[group]) / sqrt(statistics.variance[group] + eps);
        return Pair{gradient, gradient * normed};
      },
      [=] ANTICHAIN_DEVICE(Index place, const Pair& all) {
        to.sum[place] = all.sum;
        to.product[place] = all.product;
      });
}

// Holds, per place, the factors of dx = a · dy + (b · (x − mean) + c).
struct Gradient {
  float *mean, *a, *b, *c;
};

// With g = dy · weight, of which means are taken over a group of n numbers:
//   dx = (g − Σ g / n − x̂ · Σ (g · x̂) / n) / sqrt(variance + eps)
void set_gradient(Stream stream, const GroupSizes& s, const Sums& sums, const Statistics& statistics,
                  double eps, const Params& params, const Gradient& gradient) {
  for_each(stream, s.all_groups(), [=] ANTICHAIN_DEVICE(Index group) {
    const Index first = group * s.group_size(), end = first + s.group_size();
    double sum = 0, product = 0;
    for (Index place = first; place < end; ++place) {
      sum += double(params.weight_of(place % s.channels)) * sums.sum[place];
      product += double(params.weight_of(place % s.channels)) * sums.product[place];
    }
    const double scale = 1 / sqrt(statistics.variance[group] + eps), mean = statistics.mean[group];
    const double slope = -scale * scale * product / s.per_group();
    for (Index place = first; place < end; ++place) {
      gradient.mean[place] = float(mean);
      gradient.a[place] = float(double(params.weight_of(place % s.channels)) * scale);
      gradient.b[place] = float(slope);
      gradient.c[place] = float(slope * (double(float(mean)) - mean) - scale * sum / s.per_group());
    }
  });
}

template <class T>
void input_gradient(Stream stream, const GroupSizes& s, const T* x, const T* dy, T* dx, bool adds,
                    const Gradient& g) {
  for_each(stream, s.elements(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index place = s.place_of(i);
    const float fresh = g.a[place] * float(dy[i]) + (g.b[place] * (float(x[i]) - g.mean[place]) + g.c[place]);
    // A term of a sum is rounded for storage before it is added wherever it comes from another kernel, so it
    // has to be rounded here, too.
    dx[i] = adds ? T(float(dx[i]) + float(T(fresh))) : T(fresh);
  });
}

void param_gradient(Stream stream, const GroupSizes& s, const double* of_places, float* to, bool adds) {
  fold<Sum>(
      stream, s.images, s.channels,
      [=] ANTICHAIN_DEVICE(Index n, Index c) { return Sum{of_places[n * s.channels + c]}; },
      [=] ANTICHAIN_DEVICE(Index c, const Sum& all) {
        to[c] = adds ? to[c] + float(all.value) : float(all.value);
      });
}

template <class T>
class GroupNormKernel : public Kernel {
 public:
  GroupNormKernel(const GroupNormOptions& options, const Shape& x)
      : eps_(double(options.eps)), x_(options.groups, x) {}

  static int64_t workspace_bytes(const GroupSizes& s) {
    return 2 * Scratch::rounded(s.places() * int64_t(sizeof(double))) +
           4 * Scratch::rounded(s.places() * int64_t(sizeof(float))) +
           Scratch::rounded(2 * s.all_groups() * int64_t(sizeof(double)));
  }

  void forward(Context& context, const Forward& f) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, workspace_bytes(x_));
    const Statistics statistics = statistics_at(f.stash.empty() ? scratch.take<double>(2 * x_.all_groups())
                                                                : f.stash[0].data<double>());
    take_statistics(stream, x_, f.x[0].data<T>(), scratch.take<double>(x_.places()), statistics);
    const auto take_floats = [&] { return scratch.take<float>(x_.places()); };
    const Normal normal{take_floats(), take_floats(), take_floats()};
    set_normal(stream, x_, statistics, eps_, params_of(f.params), normal);
    normalise(stream, x_, f.x[0].data<T>(), f.y.data<T>(), normal);
  }

  void backward(Context& context, const Backward& b) const override {
    const Stream stream = stream_of(context);
    Scratch scratch(context, workspace_bytes(x_));
    const Statistics statistics = statistics_at(b.stash[0].data<double>());
    const T *x = b.x[0].data<T>(), *dy = b.dy.data<T>();
    const Sums sums{scratch.take<double>(x_.places()), scratch.take<double>(x_.places())};
    take_sums(stream, x_, x, dy, statistics, eps_, sums);
    const double* of_params[] = {sums.product, sums.sum};  // of weight, of bias
    for (size_t i = 0; i < b.dw.size(); ++i)
      if (b.dw[i])
        param_gradient(stream, x_, of_params[i], b.dw[i].data<float>(), b.into == Into::accumulate);
    if (b.dx.empty() || !b.dx[0]) return;
    const auto take_floats = [&] { return scratch.take<float>(x_.places()); };
    const Gradient gradient{take_floats(), take_floats(), take_floats(), take_floats()};
    set_gradient(stream, x_, sums, statistics, eps_, params_of(b.params), gradient);
    input_gradient(stream, x_, x, dy, b.dx[0].data<T>(), b.into_dx(0) == Into::accumulate, gradient);
  }

 private:
  Statistics statistics_at(double* at) const { return {at, at + x_.all_groups()}; }
  static Params params_of(std::span<const Tensor> params) {
    if (params.empty()) return {nullptr, nullptr};
    return {params[0].data<float>(), params[1].data<float>()};
  }

  const double eps_;
  const GroupSizes x_;
};

}  // namespace

KernelEntry group_norm_entry() {
  return {.lower =
              [](const Op& op, std::span<const Shape> x, std::span<const Layout>, Precision precision) {
                const GroupNormOptions& options = dynamic_cast<const GroupNorm&>(op).options;
                const Layout layout = layout_of(x[0]);
                const GroupSizes sizes(options.groups, x[0]);
                return Lowering{.x = {layout},
                                .y = layout,
                                .params = std::vector<Layout>(options.affine ? 2 : 0, Layout::plain),
                                .precision = precision,
                                .stash = {{.shape = {2, sizes.all_groups()}, .dtype = DType::f64}},
                                .keeps_x = true,
                                .adds_dx = true,
                                .workspace_bytes = GroupNormKernel<float>::workspace_bytes(sizes)};
              },
          .make =
              [](const Op& op, std::span<const TensorSpec> x, const Lowering&) {
                return make_typed<GroupNormKernel>(x[0].dtype, dynamic_cast<const GroupNorm&>(op).options,
                                                   x[0].shape);
              }};
}

}  // namespace antichain::cuda
