#include "layers/cpu/amx_loops.h"

#ifdef __x86_64__
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(                                                                   \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")
#endif

namespace antichain::cpu::amx {
namespace {

#define INLINE static inline __attribute__((always_inline))

constexpr int64_t row_bytes = 64;
constexpr int64_t pixels_of_strip =
    256;  // of two blocks of x and two of dy, which the first-level cache holds

typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(64)));

template <class Vector>
INLINE Vector load(const void* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class Vector>
INLINE void store(void* p, Vector v) {
  __builtin_memcpy(p, &v, sizeof v);
}

INLINE Halves low_pairs(Halves a, Halves b) {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41,
                                 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
}
INLINE Halves high_pairs(Halves a, Halves b) {
  return __builtin_shufflevector(a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56,
                                 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
}
INLINE Words low_pairs(Words a, Words b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
INLINE Words high_pairs(Words a, Words b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Each turn interleaves the upper half of all numbers with the lower half.
INLINE void transpose_square(Words (&rows)[16]) {
  for (int turn = 0; turn < 4; ++turn) {
    Words shuffled[16];
    for (int i = 0; i < 8; ++i) {
      shuffled[2 * i] = low_pairs(rows[i], rows[8 + i]);
      shuffled[2 * i + 1] = high_pairs(rows[i], rows[8 + i]);
    }
    __builtin_memcpy(rows, shuffled, sizeof rows);
  }
}

INLINE void store_rounded(Bf16* to, __m512 sums) {
  const __m256bh numbers = _mm512_cvtneps_pbh(sums);
  __builtin_memcpy(to, &numbers, sizeof numbers);
}

// Walks from pixel to pixel of a frame.
struct Walk {
  int64_t image, row, column;
  Walk(int64_t pixel, const Results& r)
      : image(pixel / r.frame_columns / r.frame_rows),
        row(pixel / r.frame_columns % r.frame_rows),
        column(pixel % r.frame_columns) {}
};

INLINE void hand_out(const float* sums, int64_t count, Walk& at, const Results& r) {
  const __m512 bias = r.bias ? _mm512_loadu_ps(r.bias) : _mm512_setzero_ps();
  for (int64_t i = 0; i < count; ++i) {
    if (at.column < r.columns && at.row < r.rows)
      store_rounded(r.first + at.image * r.image_step + at.row * r.row_step + at.column * r.column_step,
                    _mm512_add_ps(_mm512_load_ps(sums + i * lanes), bias));
    if (++at.column < r.frame_columns) continue;
    at.column = 0;
    if (++at.row < r.frame_rows) continue;
    at.row = 0, ++at.image;
  }
}

template <int ins, int outs>
void correlate_blocks(const Blocks& x, const Blocks& dy, int64_t pixels, const int64_t* offsets, int64_t taps,
                      const Gradients& g, bool adds) {
  for (int64_t strip = 0; strip < pixels; strip += pixels_of_strip) {
    const int64_t end = strip + pixels_of_strip < pixels ? strip + pixels_of_strip : pixels;
    for (int64_t tap = 0; tap < taps; ++tap) {
      float* const at = g.first + g.taps[tap];
      if (adds || strip > 0) {
        _tile_loadd(0, at, row_bytes);
        if (outs > 1) _tile_loadd(1, at + g.out_step, row_bytes);
        if (ins > 1) _tile_loadd(2, at + g.in_step, row_bytes);
        if (ins > 1 && outs > 1) _tile_loadd(3, at + g.in_step + g.out_step, row_bytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      for (int64_t p = strip; p < end; p += 32) {
        const Bf16* const from = x.first + offsets[tap] + p;
        _tile_loadd(4, from, x.step * 2);
        _tile_loadd(6, dy.first + p * lanes, row_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if (outs > 1) {
          _tile_loadd(7, dy.first + dy.step + p * lanes, row_bytes);
          _tile_dpbf16ps(1, 4, 7);
        }
        if (ins > 1) {
          _tile_loadd(5, from + lanes * x.step, x.step * 2);
          _tile_dpbf16ps(2, 5, 6);
          if (outs > 1) _tile_dpbf16ps(3, 5, 7);
        }
      }
      _tile_stored(0, at, row_bytes);
      if (outs > 1) _tile_stored(1, at + g.out_step, row_bytes);
      if (ins > 1) _tile_stored(2, at + g.in_step, row_bytes);
      if (ins > 1 && outs > 1) _tile_stored(3, at + g.in_step + g.out_step, row_bytes);
    }
  }
}

// A constant, because GCC 12 does not know that the instruction reads all of it.
struct alignas(64) TileShapes {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_of_row[16];
  uint8_t rows[16];
};
const TileShapes whole_tiles = {.palette = 1,
                                .start_row = 0,
                                .reserved = {},
                                .bytes_of_row = {64, 64, 64, 64, 64, 64, 64, 64},
                                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

void configure() { _tile_loadconfig(&whole_tiles); }
void release() { _tile_release(); }

void multiply(const Bf16* frame, const Taps& taps, const Bf16* weights, int64_t begin, int64_t end,
              const Results& results) {
  alignas(64) float sums[pixels_at_once * lanes];
  Walk at(begin, results);
  for (int64_t pixel = begin; pixel < end; pixel += pixels_at_once) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const Bf16* w = weights;
    for (int64_t plane = 0; plane < taps.planes; ++plane) {
      const Bf16* const first = frame + plane * taps.plane_step + pixel * channels;
      for (int64_t tap = 0; tap < taps.count; ++tap, w += tile) {
        const Bf16* const x = first + taps.offsets[tap];
        _tile_loadd(7, w, row_bytes);
        _tile_loadd(4, x, row_bytes);
        _tile_dpbf16ps(0, 4, 7);
        _tile_loadd(5, x + tile, row_bytes);
        _tile_dpbf16ps(1, 5, 7);
        _tile_loadd(6, x + 2 * tile, row_bytes);
        _tile_dpbf16ps(2, 6, 7);
        _tile_loadd(4, x + 3 * tile, row_bytes);
        _tile_dpbf16ps(3, 4, 7);
      }
    }
    _tile_stored(0, sums, row_bytes);
    _tile_stored(1, sums + 16 * lanes, row_bytes);
    _tile_stored(2, sums + 32 * lanes, row_bytes);
    _tile_stored(3, sums + 48 * lanes, row_bytes);
    hand_out(sums, end - pixel < pixels_at_once ? end - pixel : pixels_at_once, at, results);
  }
}

void interleave(const Bf16* plane, int64_t pixels, Bf16* to, int64_t step) {
  for (int64_t p = 0; p < pixels; p += 2) {
    const Halves first = load<Halves>(plane + p * channels);
    const Halves second = load<Halves>(plane + (p + 1) * channels);
    store(to + p * lanes, low_pairs(first, second));
    store(to + step + p * lanes, high_pairs(first, second));
  }
}

void transpose(const Bf16* plane, int64_t pixels, Bf16* to, int64_t step) {
  for (int64_t p = 0; p < pixels; p += 32) {
    Bf16 pairs[2][16 * 2 * lanes];
    interleave(plane + p * channels, 32, pairs[0], 16 * 2 * lanes);
    for (int64_t block = 0; block < 2; ++block) {
      Words rows[16];
      __builtin_memcpy(rows, pairs[block], sizeof rows);
      transpose_square(rows);
      for (int64_t i = 0; i < lanes; ++i) store(to + (block * lanes + i) * step + p, rows[i]);
    }
  }
}

void correlate(const Blocks& x, const Blocks& dy, int64_t pixels, const int64_t* offsets, int64_t taps,
               const Gradients& g, bool adds) {
  if (x.count > 1)
    (dy.count > 1 ? correlate_blocks<2, 2> : correlate_blocks<2, 1>)(x, dy, pixels, offsets, taps, g, adds);
  else
    (dy.count > 1 ? correlate_blocks<1, 2> : correlate_blocks<1, 1>)(x, dy, pixels, offsets, taps, g, adds);
}

void pack(const float* first, const float* second, bool turned, Bf16* to) {
  const float* const blocks[2] = {first, second};
  for (const float* from : blocks) {
    Words rows[16] = {};
    if (from) __builtin_memcpy(rows, from, sizeof rows);
    if (turned) transpose_square(rows);
    for (int i = 0; i < 16; i += 2, to += 2 * lanes) {
      const Halves both = (Halves)_mm512_cvtne2ps_pbh((__m512)rows[i + 1], (__m512)rows[i]);
      store(to, low_pairs(both, __builtin_shufflevector(both, both, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                                        26, 27, 28, 29, 30, 31, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
                                                        10, 11, 12, 13, 14, 15)));
    }
  }
}

}  // namespace
}  // namespace antichain::cpu::amx

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

namespace antichain::cpu::amx {

const Loops& loops() {
#ifdef __x86_64__
  static const Loops all = {configure, release, multiply, correlate, interleave, transpose, pack};
#else
  static const Loops all = {};
#endif
  return all;
}

}  // namespace antichain::cpu::amx
