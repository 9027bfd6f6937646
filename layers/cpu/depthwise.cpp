#include "layers/cpu/depthwise.h"

#include <omp.h>

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/sum_pixels.h"
#include "layers/typed.h"

namespace antichain::cpu {
namespace {

// Returns how many weights of one channel the taps of all classes have, which is how many they read.
int64_t weights_of(const PlaneTaps& plane) {
  int64_t rows = 0, columns = 0;
  for (int64_t i = 0; i < plane.rows.classes; ++i) rows += plane.rows.of[i].taps;
  for (int64_t j = 0; j < plane.columns.classes; ++j) columns += plane.columns.of[j].taps;
  return rows * columns;
}

// Calls f(weight of the filter, its place among the packed ones) in the order in which the loops read them.
template <class F>
void for_each_weight(const PlaneTaps& plane, int kernel_width, F&& f) {
  int64_t place = 0;
  for (int64_t i = 0; i < plane.rows.classes; ++i)
    for (int64_t j = 0; j < plane.columns.classes; ++j) {
      const Taps &rows = plane.rows.of[i], &columns = plane.columns.of[j];
      for (int64_t r = 0; r < rows.taps; ++r)
        for (int64_t s = 0; s < columns.taps; ++s)
          f((rows.weight + r * rows.weight_step) * kernel_width + columns.weight + s * columns.weight_step,
            place++);
    }
}

}  // namespace

std::optional<Depthwise> Depthwise::of(const Conv2d& op, const Shape& x, const Shape& y,
                                       Precision precision) {
  const Conv2dOptions& o = op.options;
  const bool fits =
      (has_avx512() || has_avx2()) && o.groups == x[1] && y[1] == x[1] && x[1] > 1 && has_taps(o);
  if (!fits) return std::nullopt;
  return Depthwise(o, x, y, precision);
}

Depthwise::Depthwise(const Conv2dOptions& o, const Shape& x, const Shape& y, Precision precision)
    : options_(o),
      precision_(precision),
      x_(x),
      y_(y),
      lanes_(Activation::block_of(blocked())),
      blocks_((x[1] + lanes_ - 1) / lanes_),
      group_(std::clamp<int64_t>(pixels_in_float / std::max(x[2] * x[3], y[2] * y[3]), 1, x[0])),
      forward_(forward_taps(o, x, y)),
      backward_(backward_taps(o, x, y)) {}

std::vector<TensorSpec> Depthwise::prepared() const {
  std::vector<TensorSpec> all = {{.shape = {blocks_ * weights_of(forward_) * lanes_}},
                                 {.shape = {blocks_ * weights_of(backward_) * lanes_}}};
  if (options_.bias) all.push_back({.shape = {blocks_ * lanes_}});
  return all;
}

// A thread has a frame for each image of a group, and behind them planes of results or of dy in float32.
int64_t Depthwise::frame_floats() const {
  return group_ * std::max(forward_.frame_pixels(), backward_.frame_pixels()) * lanes_;
}
int64_t Depthwise::thread_floats() const {
  const int64_t wide = precision_ == Precision::float32 ? 0 : std::max(x_[2] * x_[3], y_[2] * y_[3]);
  return frame_floats() + group_ * wide * lanes_;
}

int64_t Depthwise::sums_of_block() const { return weights_of(forward_) * lanes_; }

// The workspace holds what each thread has, and before it a block's sums for each thread.
int64_t Depthwise::workspace_bytes(int threads) const {
  return threads * (sums_of_block() * int64_t(sizeof(double)) + thread_floats() * int64_t(sizeof(float)));
}

void Depthwise::prepare(Context&, std::span<const Tensor> params, std::span<const Tensor> prepared) const {
  const float* weights = params[0].data<float>();
  const int64_t taps = int64_t(options_.kernel.h) * options_.kernel.w;
  const auto pack = [&](const PlaneTaps& plane, float* to) {
    const int64_t packed = weights_of(plane);
    for (int64_t c = 0; c < blocks_ * lanes_; ++c) {
      float* block = to + c / lanes_ * packed * lanes_ + c % lanes_;
      for_each_weight(plane, options_.kernel.w, [&](int64_t weight, int64_t place) {
        block[place * lanes_] = c < x_[1] ? weights[c * taps + weight] : 0;
      });
    }
  };
  pack(forward_, prepared[0].data<float>());
  pack(backward_, prepared[1].data<float>());
  if (!options_.bias) return;
  float* bias = prepared[2].data<float>();
  std::fill(std::copy_n(params[1].data<float>(), x_[1], bias), bias + blocks_ * lanes_, 0.0f);
}

template <class T>
void Depthwise::convolve(Context& context, const PlaneTaps& plane, const T* source, const float* weights,
                         const float* bias, T* result) const {
  const DepthwiseLoops<T>& loops = best_loops<DepthwiseLoops<T>>();
  auto* frames = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  std::fill_n(frames, context.threads() * thread_floats(), 0.0f);
  const int64_t source_plane = plane.rows.source * plane.columns.source * lanes_;
  const int64_t result_plane = plane.rows.result * plane.columns.result * lanes_;
  const int64_t weights_of_block = weights_of(plane) * lanes_;
  const int64_t groups = (x_[0] + group_ - 1) / group_;
  for_each_plane(groups * blocks_, context.threads(), [&](int64_t unit) {
    const int64_t block = unit % blocks_, n = unit / blocks_ * group_, images = std::min(group_, x_[0] - n);
    const int64_t at = n * blocks_ + block;
    float* frame = frames + omp_get_thread_num() * thread_floats();
    loops.convolve(plane, {source + at * source_plane, blocks_ * source_plane, images}, frame,
                   weights + block * weights_of_block, bias ? bias + block * lanes_ : nullptr,
                   frame + frame_floats(), {result + at * result_plane, blocks_ * result_plane, images});
  });
}

template <class T>
void Depthwise::correlate(Context& context, const T* x, const T* dy, float* dw, Into into) const {
  const DepthwiseLoops<T>& loops = best_loops<DepthwiseLoops<T>>();
  auto* sums = reinterpret_cast<double*>(context.workspace(workspace_bytes(context.threads())));
  auto* frames = reinterpret_cast<float*>(sums + context.threads() * sums_of_block());
  std::fill_n(frames, context.threads() * thread_floats(), 0.0f);
  const int64_t x_plane = x_[2] * x_[3] * lanes_, y_plane = y_[2] * y_[3] * lanes_;
  const int64_t taps = int64_t(options_.kernel.h) * options_.kernel.w;
  for_each_plane(blocks_, context.threads(), [&](int64_t block) {
    double* sum = sums + omp_get_thread_num() * sums_of_block();
    float* frame = frames + omp_get_thread_num() * thread_floats();
    std::fill_n(sum, sums_of_block(), 0.0);
    for (int64_t n = 0; n < x_[0]; n += group_) {
      const int64_t images = std::min(group_, x_[0] - n), at = n * blocks_ + block;
      loops.correlate(forward_, {x + at * x_plane, blocks_ * x_plane, images},
                      {dy + at * y_plane, blocks_ * y_plane, images}, frame, frame + frame_floats(), sum);
    }
    for (int64_t c = block * lanes_; c < std::min((block + 1) * lanes_, x_[1]); ++c) {
      float* filter = dw + c * taps;
      if (into == Into::overwrite) std::fill_n(filter, taps, 0.0f);
      for_each_weight(forward_, options_.kernel.w, [&](int64_t weight, int64_t place) {
        filter[weight] += float(sum[place * lanes_ + c - block * lanes_]);
      });
    }
  });
}

void Depthwise::forward(Context& context, const Forward& f) const {
  const float* bias = options_.bias ? f.prepared[2].data<float>() : nullptr;
  with_type(f.y.dtype(), [&]<class T>() {
    convolve(context, forward_, f.x[0].data<T>(), f.prepared[0].data<float>(), bias, f.y.data<T>());
  });
}

void Depthwise::backward(Context& context, const Backward& b) const {
  with_type(b.dy.dtype(), [&]<class T>() {
    const T* dy = b.dy.data<T>();
    if (b.dw.size() > 1 && b.dw[1])
      sum_pixels(Activation(b.dy.spec()), dy, context.threads(), b.dw[1].data<float>(), b.into);
    if (!b.dw.empty() && b.dw[0]) correlate(context, b.x[0].data<T>(), dy, b.dw[0].data<float>(), b.into);
    if (!b.dx.empty() && b.dx[0])
      convolve<T>(context, backward_, dy, b.prepared[1].data<float>(), nullptr, b.dx[0].data<T>());
  });
}

}  // namespace antichain::cpu
