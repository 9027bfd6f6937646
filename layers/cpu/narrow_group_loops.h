// The loops of narrow_groups.cpp process one block of 16 channels of one image: it is framed by zeros,
// convolved with packed weights, and correlated with a gradient. A vector register holds the block's channels
// of one pixel.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace antichain::cpu::narrow {

constexpr int lanes = 16, side = 3, taps = side * side;

// Holds one block of one image with a frame of zeros, so that no loop asks whether it is inside.
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

// Packs weights as weight[block][tap][j][lane]. Forward, lane is an output channel and j an input of its
// group. Transposed, lane is an input channel and j an output, with the taps in reverse.
inline void pack(const float* w, int64_t blocks, int group, bool transposed, float* out) {
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
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

// Sets lane l to lane l / group · group + j.
template <int group>
inline __m512 spread(__m512 v, int j) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i from =
      _mm512_add_epi32(_mm512_and_si512(lane, _mm512_set1_epi32(~(group - 1))), _mm512_set1_epi32(j));
  return _mm512_maskz_permutexvar_ps(0xFFFF, from, v);  // no lane masked out; spares a warning of GCC 12
}

// Computes `count` neighbouring outputs: every spread vector serves all the outputs whose windows contain its
// pixel.
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
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

}  // namespace antichain::cpu::narrow
