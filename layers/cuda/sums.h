// Sums over all pixels of a channel: runs of pixels by one thread each, 16 terms in float32 and then on in double, and the
// runs merged by a fold. Neighbouring threads hold neighbouring channels, so that reads are coalesced.
#pragma once

#include "framework/cuda/launch.h"

namespace antichain::cuda {

constexpr int chain = 16;  // terms summed in float32

// How the pixels of an image tensor are cut into runs: enough to fill a device, by a rule of the sizes alone.
struct Runs {
  Index pixels, channels, length, count;

  Runs(int64_t all_pixels, int64_t all_channels)
      : pixels(index_of(all_pixels)), channels(index_of(all_channels)) {
    constexpr int64_t threads = 1 << 17, most = 1024;  // most: what one fold merges quickly
    const int64_t wanted = std::clamp<int64_t>(threads / all_channels, 1, most);
    const int64_t shortest = (all_pixels + wanted - 1) / wanted;
    length = index_of((shortest + chain - 1) / chain * chain);
    count = index_of((all_pixels + length - 1) / length);
  }

  int64_t partials() const { return int64_t(count) * channels; }
  ANTICHAIN_ANYWHERE Index first(Index run) const { return run * length; }
  ANTICHAIN_ANYWHERE Index last(Index run) const {  // one past the run's last pixel
    return first(run) + length < pixels ? first(run) + length : pixels;
  }
};

// A sum that a fold merges.
struct Sum {
  double value;
  ANTICHAIN_ANYWHERE void merge(const Sum& other) { value += other.value; }
};

// db[c] ← Σ dy over all pixels, or added to it: the gradient of a bias. `partials`: runs.partials() of workspace.
template <class T>
void bias_gradient(Stream stream, const Runs& runs, const T* dy, double* partials, float* db, bool adds) {
  for_each(stream, runs.partials(), [=] ANTICHAIN_DEVICE(Index i) {
    const Index channel = i % runs.channels, run = i / runs.channels, end = runs.last(run);
    double sum = 0;
    for (Index p = runs.first(run); p < end; p += chain) {
      float part = 0;
      for (Index q = p; q < end && q < p + chain; ++q) part += float(dy[q * runs.channels + channel]);
      sum += double(part);
    }
    partials[i] = sum;
  });
  fold<Sum>(
      stream, runs.count, runs.channels,
      [=] ANTICHAIN_DEVICE(Index run, Index channel) { return Sum{partials[run * runs.channels + channel]}; },
      [=] ANTICHAIN_DEVICE(Index channel, const Sum& sum) {
        db[channel] = float(adds ? double(db[channel]) + sum.value : sum.value);
      });
}

}  // namespace antichain::cuda
