// The loops of convolutions by AMX (layers/cpu/amx_convolution.h), which multiplies tiles of bf16 numbers: 16
// rows of 32 by 32 rows of 16, of which each pair of rows lies interleaved. Sums are float32.
//
// A frame has pixels of 32 channels each, 64 bytes, and a plane of frames is one of 32 channels.
#pragma once

#include <cstdint>

#include "framework/bf16.h"

namespace antichain::cpu::amx {

constexpr int64_t lanes = 16;      // channels of a block
constexpr int64_t channels = 32;   // of a pixel in a frame
constexpr int64_t tile = 32 * 16;  // bf16 numbers
constexpr int64_t pixels_at_once = 64;

// The pixels of a frame are numbered image by image and row by row, with those between the images; `rows` x
// `columns` of each image have a result. The result of row r and column c is the 16 numbers at
// first + image · image_step + r · row_step + c · column_step.
struct Results {
  Bf16* first;
  int64_t image_step, row_step, column_step;
  int64_t rows, columns;
  int64_t frame_rows, frame_columns;
  const float* bias;  // 16 numbers, or null
};

// A result is a sum over planes and over the taps of each plane.
struct Taps {
  const int64_t* offsets;  // in numbers, from the result's pixel
  int64_t count;
  int64_t planes, plane_step;
};

// The gradients of weights are 16 x 16 numbers for each pair of blocks and each tap, those of a pair at
// `taps` behind the first. The steps lead to the next block of input and of output channels.
struct Gradients {
  float* first;
  const int64_t* taps;
  int64_t in_step, out_step;
};

// These are a plane's rows, each of the pixels of one channel, or its blocks, one after the other. A block
// has pairs of pixels: 16 times two numbers of a channel.
struct Blocks {
  const Bf16* first;
  int64_t step;  // to the next row, or to the next block
  int count;     // 1 or 2
};

struct Loops {
  // A thread begins with the one before it calls `multiply` or `correlate`, and ends with the other.
  void (*begin)();
  void (*end)();

  // Computes the results of the pixels begin to end; `weights` has a tile for each tap of each plane.
  void (*multiply)(const Bf16* frame, const Taps&, const Bf16* weights, int64_t begin, int64_t end,
                   const Results&);
  // Sums x(pixel + offset) dy(pixel) over pixels, for each tap. It adds to the gradients, or not. x is
  // transposed, dy is interleaved.
  void (*correlate)(const Blocks& x, const Blocks& dy, int64_t pixels, const int64_t* offsets, int64_t taps,
                    const Gradients&, bool adds);

  // Interleaves the pixels of a plane, the upper 16 channels in a block of their own. The number of pixels is
  // a multiple of 32, here and below.
  void (*interleave)(const Bf16* plane, int64_t pixels, Bf16* to, int64_t step);
  // Transposes a plane to 32 rows.
  void (*transpose)(const Bf16* plane, int64_t pixels, Bf16* to, int64_t step);
  // Packs 16 x 16 weights of two blocks, inputs before outputs, into a tile that multiplies 32 inputs, or
  // turned, 32 outputs. `second` is null where there is but one block.
  void (*pack)(const float* first, const float* second, bool turned, Bf16* to);
};

// Returns them for a processor that has AMX and AVX512_BF16.
const Loops& loops();

}  // namespace antichain::cpu::amx
