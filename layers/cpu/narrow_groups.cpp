#include "layers/cpu/narrow_groups.h"

#include <omp.h>

#include <algorithm>

#include "layers/cpu/activation.h"
#include "layers/cpu/dnnl.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace antichain::cpu {
namespace {

constexpr int lanes = 16, side = 3, pad = 1, taps = side * side;

// One block of one image with a frame of zeros, so that no loop asks whether it is inside.
struct Padded {
  int64_t height, width;
  int64_t floats() const { return height * width * lanes; }
};

// Copies a plane into the middle of a frame, its pixels `step` apart.
template <class T>
void frame(const T* plane, int64_t height, int64_t width, int64_t step, int64_t margin, const Padded& to,
           float* out) {
  std::fill_n(out, to.floats(), 0.0f);
  for (int64_t r = 0; r < height; ++r) {
    float* row = out + ((r * step + margin) * to.width + margin) * lanes;
    if (step == 1) {
      std::copy_n(plane + r * width * lanes, width * lanes, row);
    } else {
      for (int64_t q = 0; q < width; ++q)
        std::copy_n(plane + (r * width + q) * lanes, lanes, row + q * step * lanes);
    }
  }
}

// A plane as float32: itself, or a copy in `wide`.
const float* widened(const float* plane, int64_t, float*) { return plane; }
const float* widened(const Bf16* plane, int64_t count, float* wide) {
  for (int64_t i = 0; i < count; ++i) wide[i] = plane[i];
  return wide;
}

// Where a result is computed as float32, and how it gets to where it is stored.
float* result_in(float* plane, float*) { return plane; }
float* result_in(Bf16*, float* wide) { return wide; }
void hand_over(const float*, int64_t, float*) {}
void hand_over(const float* wide, int64_t count, Bf16* plane) {
  for (int64_t i = 0; i < count; ++i) plane[i] = Bf16(wide[i]);
}

// weight[block][tap][j][lane]. Forward: lane is an output channel and j an input of its group; transposed: the other
// way round, with the taps in reverse.
void pack(const float* w, int64_t blocks, int group, bool transposed, float* out) {
  for (int64_t block = 0; block < blocks; ++block) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int j = 0; j < group; ++j) {
        for (int lane = 0; lane < lanes; ++lane) {
          const int64_t first = block * lanes + lane / group * group, mine = lane % group;
          const int64_t o = transposed ? first + j : first + mine, i = transposed ? mine : j;
          *out++ = w[(o * group + i) * taps + (transposed ? taps - 1 - tap : tap)];
        }
      }
    }
  }
}

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx512f")

// Lane l becomes lane l / group · group + j.
template <int group>
inline __m512 spread(__m512 v, int j) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i from =
      _mm512_add_epi32(_mm512_and_si512(lane, _mm512_set1_epi32(~(group - 1))), _mm512_set1_epi32(j));
  return _mm512_maskz_permutexvar_ps(0xFFFF, from, v);  // no lane masked out; spares a warning of GCC 12
}

// `count` neighbouring outputs: every spread vector serves all the outputs whose windows contain its pixel.
template <int group, int stride, int count>
inline void convolve_strip(const float* x, int64_t row, const float* w, float* y) {
  __m512 sum[count];
#pragma GCC unroll 16
  for (int t = 0; t < count; ++t) sum[t] = _mm512_setzero_ps();
  for (int ky = 0; ky < side; ++ky) {
    for (int j = 0; j < group; ++j) {
      __m512 weight[side];
#pragma GCC unroll 3
      for (int kx = 0; kx < side; ++kx)
        weight[kx] = _mm512_loadu_ps(w + ((ky * side + kx) * group + j) * lanes);
#pragma GCC unroll 40
      for (int column = 0; column < (count - 1) * stride + side; ++column) {
        const __m512 v = spread<group>(_mm512_loadu_ps(x + ky * row + column * lanes), j);
#pragma GCC unroll 3
        for (int kx = 0; kx < side; ++kx) {
          const int t = (column - kx) / stride;
          if (column >= kx && (column - kx) % stride == 0 && t < count)
            sum[t] = _mm512_fmadd_ps(v, weight[kx], sum[t]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < count; ++t) _mm512_storeu_ps(y + t * lanes, sum[t]);
}

template <int group, int stride>
void convolve_plane(const float* x, const Padded& padded, const float* w, float* y, int64_t height,
                    int64_t width) {
  const int64_t row = padded.width * lanes;
  for (int64_t oy = 0; oy < height; ++oy) {
    const float* from = x + oy * stride * row;
    float* to = y + oy * width * lanes;
    int64_t ox = 0;
    const auto strips = [&]<int count>() {
      for (; ox + count <= width; ox += count)
        convolve_strip<group, stride, count>(from + ox * stride * lanes, row, w, to + ox * lanes);
    };
    strips.template operator()<16>();
    strips.template operator()<8>();
    strips.template operator()<2>();
    strips.template operator()<1>();
  }
}

// Adds one image's sums to sum[tap][j][lane]: lane is an input channel, j an output channel of its group.
template <int group, int stride>
void correlate_plane(const float* x, const Padded& padded, const float* dy, int64_t height, int64_t width,
                     float* sum) {
  constexpr int at_once = 4;  // spread channels: 3 taps of each fill 12 accumulators
  for (int ky = 0; ky < side; ++ky) {
    for (int first = 0; first < group; first += at_once) {
      __m512 of[side][at_once];
#pragma GCC unroll 12
      for (int i = 0; i < side * at_once; ++i) of[i / at_once][i % at_once] = _mm512_setzero_ps();
      for (int64_t oy = 0; oy < height; ++oy) {
        const float* from = x + (oy * stride + ky) * padded.width * lanes;
        for (int64_t ox = 0; ox < width; ++ox) {
          const __m512 g = _mm512_loadu_ps(dy + (oy * width + ox) * lanes);
#pragma GCC unroll 4
          for (int j = 0; j < at_once; ++j) {
            const __m512 v = spread<group>(g, first + j);
#pragma GCC unroll 3
            for (int kx = 0; kx < side; ++kx)
              of[kx][j] = _mm512_fmadd_ps(v, _mm512_loadu_ps(from + (ox * stride + kx) * lanes), of[kx][j]);
          }
        }
      }
      for (int kx = 0; kx < side; ++kx) {
        for (int j = 0; j < at_once; ++j) {
          float* to = sum + ((ky * side + kx) * group + first + j) * lanes;
          _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), of[kx][j]));
        }
      }
    }
  }
}
#pragma GCC pop_options
#endif

// Calls f.template operator()<group, stride>().
template <class F>
void with_constants(int group, int stride, F&& f) {
  if (group == 4)
    stride == 1 ? f.template operator()<4, 1>() : f.template operator()<4, 2>();
  else
    stride == 1 ? f.template operator()<8, 1>() : f.template operator()<8, 2>();
}

int64_t packed_floats(int64_t blocks, int group) { return blocks * taps * group * lanes; }

}  // namespace

std::optional<NarrowGroups> NarrowGroups::of(const Conv2d& op, const Shape& x, const Shape& y,
                                             Precision precision) {
#ifdef __x86_64__
  const Conv2dOptions& o = op.options;
  const int64_t group = x[1] / o.groups;
  const bool fits = has_avx512() && o.groups > 1 && (group == 4 || group == 8) && y[1] == x[1] &&
                    x[1] % lanes == 0 && o.kernel == Extent(side) && o.stride.h == o.stride.w &&
                    o.stride.h <= 2 && o.pad == Extent(pad) && !o.bias;
  if (!fits) return std::nullopt;
  NarrowGroups it;
  it.precision_ = precision;
  it.group_ = int(group);
  it.stride_ = int(o.stride.h);
  it.images_ = x[0];
  it.blocks_ = x[1] / lanes;
  it.height_ = x[2];
  it.width_ = x[3];
  it.y_height_ = y[2];
  it.y_width_ = y[3];
  return it;
#else
  return std::nullopt;
#endif
}

// A frame holds the image, or dy with its pixels `stride_` apart, which is no larger.
int64_t NarrowGroups::frame_floats() const { return (height_ + 2 * pad) * (width_ + 2 * pad) * lanes; }

int64_t NarrowGroups::wide_floats() const {
  return precision_ == Precision::float32 ? 0 : std::max(height_ * width_, y_height_ * y_width_) * lanes;
}

// Packed weights, or sums of their gradients, and for each thread a frame and a widened plane.
int64_t NarrowGroups::workspace_bytes(int threads) const {
  return (packed_floats(blocks_, group_) + threads * (frame_floats() + wide_floats())) *
         int64_t(sizeof(float));
}

#ifdef __x86_64__
template <class T>
void NarrowGroups::forward(Context& context, const T* x, const float* w, T* y) const {
  auto* packed = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  float* frames = packed + packed_floats(blocks_, group_);
  pack(w, blocks_, group_, false, packed);
  const Padded padded{height_ + 2 * pad, width_ + 2 * pad};
  const int64_t x_plane = height_ * width_ * lanes, y_plane = y_height_ * y_width_ * lanes;
  with_constants(group_, stride_, [&]<int group, int stride>() {
#pragma omp parallel for num_threads(context.threads()) schedule(static)
    for (int64_t plane = 0; plane < images_ * blocks_; ++plane) {
      float* framed = frames + omp_get_thread_num() * (frame_floats() + wide_floats());
      frame(x + plane * x_plane, height_, width_, 1, pad, padded, framed);
      float* result = result_in(y + plane * y_plane, framed + frame_floats());
      convolve_plane<group, stride>(framed, padded, packed + packed_floats(plane % blocks_, group_), result,
                                    y_height_, y_width_);
      hand_over(result, y_plane, y + plane * y_plane);
    }
  });
}

// A convolution of stride 1 over dy, whose pixels are as far apart as the windows were.
template <class T>
void NarrowGroups::backward_data(Context& context, const float* w, const T* dy, T* dx) const {
  auto* packed = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  float* frames = packed + packed_floats(blocks_, group_);
  pack(w, blocks_, group_, true, packed);
  const Padded padded{height_ + 2 * pad, width_ + 2 * pad};
  const int64_t x_plane = height_ * width_ * lanes, y_plane = y_height_ * y_width_ * lanes;
  with_constants(group_, 1, [&]<int group, int>() {
#pragma omp parallel for num_threads(context.threads()) schedule(static)
    for (int64_t plane = 0; plane < images_ * blocks_; ++plane) {
      float* framed = frames + omp_get_thread_num() * (frame_floats() + wide_floats());
      frame(dy + plane * y_plane, y_height_, y_width_, stride_, side - 1 - pad, padded, framed);
      float* result = result_in(dx + plane * x_plane, framed + frame_floats());
      convolve_plane<group, 1>(framed, padded, packed + packed_floats(plane % blocks_, group_), result,
                               height_, width_);
      hand_over(result, x_plane, dx + plane * x_plane);
    }
  });
}

template <class T>
void NarrowGroups::backward_weights(Context& context, const T* x, const T* dy, float* dw, Into into) const {
  auto* sums = reinterpret_cast<float*>(context.workspace(workspace_bytes(context.threads())));
  float* frames = sums + packed_floats(blocks_, group_);
  const Padded padded{height_ + 2 * pad, width_ + 2 * pad};
  const int64_t x_plane = height_ * width_ * lanes, y_plane = y_height_ * y_width_ * lanes;
  with_constants(group_, stride_, [&]<int group, int stride>() {
#pragma omp parallel for num_threads(context.threads()) schedule(static)
    for (int64_t block = 0; block < blocks_; ++block) {
      float* sum = sums + packed_floats(block, group_);
      std::fill_n(sum, packed_floats(1, group_), 0.0f);
      float* framed = frames + omp_get_thread_num() * (frame_floats() + wide_floats());
      for (int64_t n = 0; n < images_; ++n) {
        const int64_t plane = n * blocks_ + block;
        frame(x + plane * x_plane, height_, width_, 1, pad, padded, framed);
        correlate_plane<group, stride>(framed, padded,
                                       widened(dy + plane * y_plane, y_plane, framed + frame_floats()),
                                       y_height_, y_width_, sum);
      }
    }
  });
  for (int64_t i = 0; i < packed_floats(blocks_, group_); ++i) {
    const int64_t lane = i % lanes, j = i / lanes % group_, tap = i / lanes / group_ % taps,
                  block = i / lanes / group_ / taps;
    const int64_t output = block * lanes + lane / group_ * group_ + j;
    float& to = dw[(output * group_ + lane % group_) * taps + tap];
    to = into == Into::overwrite ? sums[i] : to + sums[i];
  }
}
#else  // never made
template <class T>
void NarrowGroups::forward(Context&, const T*, const float*, T*) const {}
template <class T>
void NarrowGroups::backward_data(Context&, const float*, const T*, T*) const {}
template <class T>
void NarrowGroups::backward_weights(Context&, const T*, const T*, float*, Into) const {}
#endif

void NarrowGroups::forward(Context& context, const Forward& f) const {
  with_type(f.y.dtype(),
            [&]<class T>() { forward(context, f.x[0].data<T>(), f.params[0].data<float>(), f.y.data<T>()); });
}

void NarrowGroups::backward(Context& context, const Backward& b) const {
  with_type(b.dy.dtype(), [&]<class T>() {
    const T* dy = b.dy.data<T>();
    if (!b.dw.empty() && b.dw[0])
      backward_weights(context, b.x[0].data<T>(), dy, b.dw[0].data<float>(), b.into);
    if (!b.dx.empty() && b.dx[0]) backward_data(context, b.params[0].data<float>(), dy, b.dx[0].data<T>());
  });
}

}  // namespace antichain::cpu
