// Sums up all pixels of each channel of images in NHWC, in packs of channels (framework/cuda/arrays.h):
//
//   parts   of the pixels, a block of threads each; a part is shared among `runs` threads per channel, pixel
//           by pixel
//   run     one thread's pixels: 16 terms in float32 and then on in double
//   values  of a part's runs are merged in a fixed tree and left as one partial per channel, those of all
//           parts by a fold, which is a launch of its own
//
// The cuts depend on the sizes alone, not on packs. So no bit depends on the arrays' addresses.
#pragma once

#include "framework/cuda/arrays.h"
#include "layers/cuda/scratch.h"

namespace antichain::cuda {

constexpr int chain = 16;      // terms summed in float32
constexpr int runs = 32;       // of a part
constexpr int most_packs = 8;  // that a block takes of a pixel: 128 bytes

struct PixelParts {
  Index pixels, channels, length, count;  // length: of a run, count: of parts

  PixelParts(int64_t all_pixels, int64_t all_channels)
      : pixels(index_of(all_pixels)), channels(index_of(all_channels)), length(8) {
    // There are enough blocks to fill a device, but not many more partials than one fold merges quickly.
    const int64_t most = std::clamp<int64_t>((1 << 15) / all_channels, 16, 256);
    while (int64_t(length) * runs * most < all_pixels) length *= 2;
    count = (pixels + span() - 1) / span();
  }

  int64_t partials() const { return int64_t(count) * channels; }
  ANTICHAIN_ANYWHERE Index span() const { return length * runs; }
  ANTICHAIN_ANYWHERE Index end(Index part) const {
    return (part + 1) * span() < pixels ? (part + 1) * span() : pixels;
  }
  // Returns how many of a part's runs have a pixel.
  ANTICHAIN_ANYWHERE Index used(Index part) const {
    return end(part) - part * span() < runs ? end(part) - part * span() : Index(runs);
  }
};

// Partials holds one Value per part and channel in the workspace.
template <class Value>
struct Partials {
  Value* at;

  explicit Partials(Value* place) : at(place) {}
  Partials(Scratch& scratch, const PixelParts& parts) : at(scratch.take<Value>(parts.partials())) {}
  static int64_t bytes(const PixelParts& parts) {
    return Scratch::rounded(parts.partials() * int64_t(sizeof(Value)));
  }
};

// A Sum is a sum that a fold merges, and also a run of it.
struct Sum {
  double value;
  ANTICHAIN_ANYWHERE void merge(const Sum& other) { value += other.value; }
};
struct SumRun {
  using Value = Sum;
  float part = 0;
  double sum = 0;
  ANTICHAIN_ANYWHERE void carry() {  // ends a chain
    sum += double(part);
    part = 0;
  }
  ANTICHAIN_ANYWHERE Sum value(Index /*terms*/) const { return {sum}; }
};

// Computes one thread's run of one pack of channels. f(run, first, numbers...) adds a pixel's numbers to the
// channel's run; `first` is true for the run's first pixel.
template <int width, class Run, class F, class... A>
ANTICHAIN_DEVICE void take_run(const PixelParts& parts, Index part, Index run, Index group, const F& f,
                               typename Run::Value* values, const A&... arrays) {
  constexpr Index ahead = 4;  // pixels read before one is used: requests under way
  Packs<width, A...> constant, pack[ahead];
  constant.template load<true>(group * width, arrays...);
  Run of_channel[width];
  Index taken = 0;
  const Index end = parts.end(part);
  for (Index first = part * parts.span() + run; first < end; first += ahead * runs) {
    const auto at = [&](Index k) { return (first + k * runs) * parts.channels + group * width; };
    ANTICHAIN_UNROLL
    for (Index k = 0; k < ahead; ++k)
      if (first + k * runs < end) pack[k].template load<false>(at(k), arrays...);
    ANTICHAIN_UNROLL
    for (Index k = 0; k < ahead; ++k) {
      if (first + k * runs >= end) break;
      ANTICHAIN_UNROLL
      for (int j = 0; j < width; ++j) pack[k].apply(j, constant, f, of_channel[j], taken == 0);
      pack[k].store(at(k), arrays...);
      ++taken;
    }
    if (taken % chain != 0) continue;
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) of_channel[j].carry();
  }
  ANTICHAIN_UNROLL
  for (int j = 0; j < width; ++j) {
    of_channel[j].carry();
    values[j] = of_channel[j].value(taken);
  }
}

template <class Value>
struct PartialOf {
  const Value* partials;
  Index channels;
  ANTICHAIN_DEVICE Value operator()(Index part, Index channel) const {
    return partials[part * channels + channel];
  }
};

#ifdef ANTICHAIN_LAUNCHES

ANTICHAIN_DEVICE inline Index thread_of_block() { return threadIdx.y * blockDim.x + threadIdx.x; }
ANTICHAIN_DEVICE inline Index threads_of_block() { return blockDim.x * blockDim.y; }

// Leaves the sums of a block's part as partials. `values` are of the block's shared memory.
template <int width, class Run, class F, class... A>
ANTICHAIN_DEVICE void sum_part(const PixelParts& parts, const F& f, typename Run::Value* values,
                               typename Run::Value* partials, const A&... arrays) {
  const Index part = blockIdx.y, run = threadIdx.y, columns = blockDim.x * width;
  if (run < parts.used(part))
    take_run<width, Run>(parts, part, run, blockIdx.x * blockDim.x + threadIdx.x, f,
                         values + run * columns + threadIdx.x * width, arrays...);
  const Index me = thread_of_block(), threads = threads_of_block();
  for (Index half = runs / 2; half > 0; half /= 2) {
    __syncthreads();
    const Index pairs = parts.used(part) > half ? min(half, parts.used(part) - half) : 0;
    for (Index i = me; i < pairs * columns; i += threads) values[i].merge(values[i + half * columns]);
  }
  __syncthreads();
  for (Index i = me; i < columns; i += threads)
    partials[part * parts.channels + blockIdx.x * columns + i] = values[i];
}

// The launches have blockDim: packs of a pixel x runs; gridDim: blocks of packs x parts.
template <int width, class Run, class F, class... A>
__global__ void __launch_bounds__(most_packs* runs)
    run_sums(const PixelParts parts, const F f, typename Run::Value* partials, A... arrays) {
  __shared__ typename Run::Value values[runs * most_packs * width];
  sum_part<width, Run>(parts, f, values, partials, arrays...);
}

template <int width, class Run, class F, class Finish, class... A>
void sum_packs(Stream stream, const PixelParts& parts, const Partials<typename Run::Value>& partials,
               const F& f, const Finish& finish, const A&... arrays) {
  using Value = typename Run::Value;
  const Index groups = parts.channels / width;
  Index packs = std::min<Index>(groups, most_packs);
  while (groups % packs != 0) --packs;
  const dim3 grid(groups / packs, parts.count), block(packs, runs);
  launch(run_sums<width, Run, F, A...>, grid, block, stream, parts, f, partials.at, arrays...);
  fold<Value>(stream, parts.count, parts.channels, PartialOf<Value>{partials.at, parts.channels}, finish);
}

#else

template <int width, class Run, class F, class Finish, class... A>
void sum_packs(Stream stream, const PixelParts& parts, const Partials<typename Run::Value>& partials,
               const F& f, const Finish& finish, const A&... arrays) {
  using Value = typename Run::Value;
  for (Index part = 0; part < parts.count; ++part)
    for (Index group = 0; group < parts.channels / width; ++group) {
      Value values[runs][width] = {};
      for (Index run = 0; run < parts.used(part); ++run)
        take_run<width, Run>(parts, part, run, group, f, values[run], arrays...);
      for (Index half = runs / 2; half > 0; half /= 2)
        for (Index run = 0; run < half && run + half < parts.used(part); ++run)
          for (int j = 0; j < width; ++j) values[run][j].merge(values[run + half][j]);
      for (int j = 0; j < width; ++j)
        partials.at[part * parts.channels + group * width + Index(j)] = values[0][j];
    }
  fold<Value>(stream, parts.count, parts.channels, PartialOf<Value>{partials.at, parts.channels}, finish);
}

#endif

// Calls finish(channel, value) with the sums over all pixels. f is as in take_run.
template <class Run, class F, class Finish, class... A>
void sum_channels(Stream stream, const PixelParts& parts, const Partials<typename Run::Value>& partials,
                  const F& f, const Finish& finish, const A&... arrays) {
  constexpr int width = pack_width<A...>();
  if (parts.channels % width == 0 && aligned<width>(arrays...))
    sum_packs<width, Run>(stream, parts, partials, f, finish, arrays...);
  else
    sum_packs<1, Run>(stream, parts, partials, f, finish, arrays...);
}

}  // namespace antichain::cuda
