// The loops of convolutions by Winograd's minimal filtering (layers/cpu/winograd.h). They are written once
// (winograd_loops.inc) and compiled for AVX2, with 8 channels a block, and AVX-512, with 16.
//
// A tile of 4 x 4 results is computed from 6 x 6 pixels. Both, and the 3 x 3 filter, are transformed to 36
// values, one for each pair of points at which polynomials are evaluated. For each of the 36 a product of
// matrices sums over the channels. A matrix of rows x columns is stored in blocks of `lanes` columns: block
// after block, row after row, lane after lane. `step` is the distance of two blocks or of two of the 36, in
// numbers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "framework/bf16.h"
#include "layers/cpu/instruction_set.h"

namespace antichain::cpu {

constexpr int64_t tile_side = 4, points = 36;

// Views one block of channels of all images, of which tiles are numbered image by image and row by row.
template <class T>
struct TiledPlanes {
  T* first;
  int64_t image_step;
  int64_t height, width;
  int64_t tile_rows, tile_columns;
  int64_t row, column;  // of the plane where the first tile begins: −1 with a padding of 1
};

struct Range {
  int64_t begin, end;
};

struct Columns {
  float* first;
  int64_t step;
};
struct ConstColumns {
  const float* first;
  int64_t step;
};

// T is that of images: float or Bf16.
template <class T>
struct WinogradTransforms {
  // Transform 6 x 6 pixels, or 4 x 4 pixels of a gradient, of each tile to values of the points. Pixels
  // outside the plane count as zero.
  void (*from_pixels)(const TiledPlanes<const T>&, Range tiles, Columns values);
  void (*from_gradient)(const TiledPlanes<const T>&, Range tiles, Columns values);
  // Transforms values of the points to 4 x 4 results a tile, and adds `bias`, a number a lane or null.
  void (*to_results)(const TiledPlanes<T>&, Range tiles, ConstColumns values, const float* bias);
};

struct WinogradLoops {
  int64_t lanes;
  WinogradTransforms<float> of_float32;
  WinogradTransforms<Bf16> of_bf16;
  template <class T>
  const WinogradTransforms<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return of_float32;
    else
      return of_bf16;
  }

  // Transform 3 x 3 x lanes x lanes weights of a pair of blocks, input channels before output channels, to
  // values whose columns are output channels. `from_turned_filter` turns each filter by 180 degrees and has
  // input channels as columns.
  void (*from_filter)(const float* weights, Columns values);
  void (*from_turned_filter)(const float* weights, Columns values);
  // Transforms gradients of values to gradients of weights, and adds them to those that are there or not.
  void (*to_filter)(ConstColumns values, float* weights, bool adds);

  // c ← a b, or c + a b, for matrices of rows x inner and inner x columns, both counted in blocks but for the
  // rows.
  void (*multiply)(ConstColumns a, ConstColumns b, Columns c, int64_t rows, int64_t inner, int64_t columns,
                   bool adds);
  // c ← aᵀ b for matrices of `inner` x rows and `inner` x columns, the latter two in blocks.
  void (*correlate)(ConstColumns a, ConstColumns b, Columns c, int64_t inner, int64_t rows, int64_t columns);
};

}  // namespace antichain::cpu
