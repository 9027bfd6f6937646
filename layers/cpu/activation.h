// Views an activation of any layout as images x channel blocks x pixels x channels of one block. The plain
// layout has one channel per block, so that one loop serves every layout.
#pragma once

#include <algorithm>

#include "framework/error.h"
#include "framework/op.h"
#include "framework/tensor.h"
#include "layers/typed.h"

namespace antichain::cpu {

struct Activation {
  int64_t images, channels, blocks, height, width, block;

  explicit Activation(const TensorSpec& spec)
      : images(spec.shape[0]),
        channels(spec.shape[1]),
        height(spec.shape[2]),
        width(spec.shape[3]),
        block(block_of(spec.layout)) {
    blocks = (channels + block - 1) / block;
  }

  int64_t pixels() const { return height * width; }
  int64_t plane() const { return pixels() * block; }  // elements of one block of channels of one image
  int64_t planes() const { return images * blocks; }

  static int64_t block_of(Layout layout) {
    ANTICHAIN_CHECK(layout != Layout::nhwc, "the cpu engine's own loops know plain and blocked layouts");
    return layout == Layout::nChw16c ? 16 : layout == Layout::nChw8c ? 8 : 1;
  }
};

// Calls f.template operator()<block>() with the block size as a constant, so that its loops over channels
// vectorise.
template <class F>
void with_block(int64_t block, F&& f) {
  if (block == 16) return f.template operator()<16>();
  if (block == 8) return f.template operator()<8>();
  f.template operator()<1>();
}

// Writes zeros to the channels of the last block of every image that the tensor does not have.
template <class T>
void clear_padding(const Activation& view, T* at) {
  const int64_t last = (view.blocks - 1) * view.block, real = view.channels - last;
  for (int64_t n = 0; real < view.block && n < view.images; ++n) {
    T* plane = at + ((n + 1) * view.blocks - 1) * view.plane();
    for (int64_t p = 0; p < view.pixels(); ++p)
      std::fill(plane + p * view.block + real, plane + (p + 1) * view.block, T(0.0f));
  }
}

// Threads share units of work: a row per image times a plane per block. Each unit is computed by one thread
// from start to end, so results do not depend on the thread count.
template <class F>
void for_each_plane(int64_t planes, int threads, F&& f) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t plane = 0; plane < planes; ++plane) f(plane);
}

}  // namespace antichain::cpu
