// Winograd computes convolutions of 3 x 3 filters with stride 1 by minimal filtering: A. Lavin and
// S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016. F(4 x 4, 3 x 3) takes 36
// multiplications for 16 results, where a direct convolution takes 144.
//
// Tensors are `blocked()`, filters in the layout of the same blocks (OIhw16i16o, OIhw8i8o). Tiles are
// processed some at a time: their pixels are transformed, 36 products of matrices sum over the channels, or
// for weight gradients over the tiles, and the results are transformed back. The transform of filters is four
// times as large as they are. It is computed for a few channels at a time, which the second-level cache holds
// with their products, and again for other tiles: that is faster than to read it from memory. Every sum has
// one order, which depends on the shape alone, so the bits are the same on any number of threads. Groups of
// channels are convolutions of their own, whose filters lie one after the other. Images may be bf16: they are
// widened when they are transformed, and all else is float32, the weights among it.
//
// The points are 0, ±5/8, ±3/2 and infinity, as in oneDNN 2: numbers that float32 has exactly, with smaller
// errors than 0, ±1 and ±2 (B. Barabasz, A. Anderson, K. Soodhalter and D. Gregg, "Error Analysis and
// Improving the Accuracy of Winograd Convolution for Deep Neural Networks", ACM TOMS, 2020).
#pragma once

#include <cstdint>

#include "framework/op.h"
#include "framework/tensor.h"
#include "layers/conv2d.h"
#include "layers/cpu/winograd_loops.h"

namespace antichain::cpu {

class Winograd {
 public:
  enum class Pass { forward, data, weights };
  // Returns whether the channels of each group fill blocks of both sides on any processor.
  static bool whole_groups(int groups, const Shape& x, const Shape& y) {
    return x[1] / groups % 16 == 0 && y[1] / groups % 16 == 0;
  }
  // Returns whether it computes a pass of this convolution faster than oneDNN does. That follows from the
  // shape and the instruction set alone.
  static bool pays(const Conv2dOptions&, const Shape& x, const Shape& y, Precision, Pass);

  // The shapes of x and y may have channels that do not fill blocks, but those of each of several groups do;
  // `before` is the padding before rows and columns, 0 to 2. The machine has the instructions of the loops,
  // AVX2 or AVX-512, and tensors have blocks of their lanes.
  Winograd(const Shape& x, const Shape& y, Extent before, int groups = 1,
           const WinogradLoops& = best_loops<WinogradLoops>());

  // Return the bytes of the workspaces that the passes take.
  int64_t forward_bytes(int threads) const { return teams(threads) * convolve_bytes(x_, y_, team(threads)); }
  int64_t backward_data_bytes(int threads) const {
    return teams(threads) * convolve_bytes(y_, x_, team(threads));
  }
  int64_t backward_weights_bytes(int threads) const {
    return teams(threads) * correlate_bytes(team(threads));
  }

  // T is float or Bf16. `bias` has a number for each channel of y, or is null.
  template <class T>
  void forward(std::byte* workspace, int threads, const T* x, const float* weights, const float* bias,
               T* y) const;
  template <class T>
  void backward_data(std::byte* workspace, int threads, const float* weights, const T* dy, T* dx) const;
  template <class T>
  void backward_weights(std::byte* workspace, int threads, const T* x, const T* dy, float* dw, Into) const;

 private:
  // Channels and blocks of a group; `image_blocks` are those of all groups.
  struct Side {
    int64_t channels, blocks, image_blocks, height, width;
  };
  template <class T>
  struct Filtered;
  // Where there are enough groups, each thread works on groups of its own; otherwise all work on one after
  // the other.
  int teams(int threads) const { return channel_groups_ >= threads ? threads : 1; }
  int team(int threads) const { return threads / teams(threads); }
  template <class F>
  void for_each_group(std::byte* workspace, int64_t bytes, int threads, const F&) const;
  int64_t tiles(const Side& of) const;
  int64_t numbers_of_group(const Side& of) const { return of.blocks * of.height * of.width * lanes_; }
  int64_t weights_of_group() const { return x_.blocks * y_.blocks * 9 * lanes_ * lanes_; }
  int64_t convolve_bytes(const Side& from, const Side& to, int threads) const;
  int64_t correlate_bytes(int threads) const;
  template <class T>
  void convolve(std::byte* workspace, int threads, const Filtered<T>&) const;
  template <class T>
  void correlate(std::byte* workspace, int threads, const T* x, const T* dy, float* dw, Into) const;

  const WinogradLoops* loops_;
  int channel_groups_;
  int64_t images_, lanes_;
  Side x_, y_;
  Extent before_;
};

}  // namespace antichain::cpu
