// Runs passes over arrays (framework/cuda/arrays.h), number by number, in packs where the arrays are aligned:
//
//   for_elements   f(i, numbers...) for every i: the numbers at i of every array
//   for_channels   f(numbers...) for every element of images in NHWC, with the numbers of its channel
//
// A number is a float, or a float& that f sets, in the order of the arrays. Packs or single numbers give the
// same bits.
#pragma once

#include "framework/cuda/arrays.h"

namespace antichain::cuda {

// One thread's share of for_elements: one pack, or the rest of an array that does not fill a pack.
template <int width, class F>
struct ElementPass {
  Index count;
  F f;

  template <class... A>
  ANTICHAIN_DEVICE void operator()(Index pack, const A&... arrays) const {
    const Index first = pack * width;
    if (count - first >= width) return take<width>(first, arrays...);
    for (Index i = first; i < count; ++i) take<1>(i, arrays...);
  }

 private:
  template <int numbers, class... A>
  ANTICHAIN_DEVICE void take(Index first, const A&... arrays) const {
    Packs<numbers, A...> packs;
    packs.template load<false>(first, arrays...);
    ANTICHAIN_UNROLL
    for (int j = 0; j < numbers; ++j) packs.apply(j, packs, f, first + Index(j));
    packs.store(first, arrays...);
  }
};

template <class F, class... A>
void for_elements(Stream stream, int64_t count, const F& f, const A&... arrays) {
  constexpr int width = pack_width<A...>();
  const Index n = index_of(count);
  if (aligned<width>(arrays...))
    for_each(stream, (count + width - 1) / width, ElementPass<width, F>{n, f}, arrays...);
  else
    for_each(stream, count, ElementPass<1, F>{n, f}, arrays...);
}

// One thread's share of for_channels: the packs `thread`, `thread` + `threads`, …, which all have the same
// channels.
template <int width, class F>
struct ChannelPass {
  Index packs, threads, groups;  // groups: packs of one pixel
  F f;

  template <class... A>
  ANTICHAIN_DEVICE void operator()(Index thread, const A&... arrays) const {
    Packs<width, A...> constant, pack;
    constant.template load<true>(thread % groups * width, arrays...);
    for (Index p = thread; p < packs; p += threads) {
      pack.template load<false>(p * width, arrays...);
      ANTICHAIN_UNROLL
      for (int j = 0; j < width; ++j) pack.apply(j, constant, f);
      pack.store(p * width, arrays...);
    }
  }
};

template <int width, class F, class... A>
void for_channel_packs(Stream stream, int64_t pixels, int64_t channels, const F& f, const A&... arrays) {
  // There are as many threads as an H200 holds when they use few registers; a further one would only read its
  // constants again.
  constexpr int64_t most = 1 << 18;
  const int64_t groups = channels / width, threads = groups * std::clamp<int64_t>(most / groups, 1, pixels);
  const Index packs = index_of(pixels * groups);
  for_each(stream, threads, ChannelPass<width, F>{packs, index_of(threads), index_of(groups), f}, arrays...);
}

template <class F, class... A>
void for_channels(Stream stream, int64_t pixels, int64_t channels, const F& f, const A&... arrays) {
  constexpr int width = pack_width<A...>();
  index_of(pixels * channels);
  if (channels % width == 0 && aligned<width>(arrays...))
    for_channel_packs<width>(stream, pixels, channels, f, arrays...);
  else
    for_channel_packs<1>(stream, pixels, channels, f, arrays...);
}

}  // namespace antichain::cuda
