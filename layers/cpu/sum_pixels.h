// Sums the gradient of an activation over images and pixels, which gives the gradient of a bias.
#pragma once

#include <algorithm>

#include "framework/op.h"
#include "layers/cpu/activation.h"

namespace antichain::cpu {

// Sums in float32 along a row of pixels and in double across rows. One float32 chain over all of them would
// lose two digits.
template <class T>
void sum_pixels(const Activation& y, const T* dy, int threads, float* db, Into into) {
  with_block(y.block, [&]<int B>() {
    for_each_plane(y.blocks, threads, [&](int64_t k) {
      double total[B] = {};
      for (int64_t n = 0; n < y.images; ++n) {
        const T* plane = dy + (n * y.blocks + k) * y.plane();
        for (int64_t row = 0; row < y.height; ++row) {
          float sum[B] = {};
          for (int64_t q = 0; q < y.width; ++q)
            for (int c = 0; c < B; ++c) sum[c] += float(plane[(row * y.width + q) * B + c]);
          for (int c = 0; c < B; ++c) total[c] += double(sum[c]);
        }
      }
      for (int64_t c = k * B; c < std::min(y.channels, (k + 1) * B); ++c)
        db[c] = float(total[c - k * B] + (into == Into::accumulate ? db[c] : 0));
    });
  });
}

}  // namespace antichain::cpu
