// This file describes the arrays that a pass over memory reads and writes. A thread takes one pack at a time:
// 16 bytes of the array with the largest numbers. Requests of that size are what it takes to keep a GPU's
// memory busy.
//
//   read(x)      x is read             write(y)     y is written
//   update(y)    both                  into(y, b)   both if b, else y is written
//   channel(x)   a number per channel, read once by each thread
//   row(x, n)    a number for each n elements, such as a pixel's channels
//   write<Rounding::in_pairs>(y)   y is written, and rounded to Bf16 by the device's own instruction
//
// Numbers are float in registers, float or Bf16 in memory. An array that is not read, or is nullptr, reads as
// 0; a nullptr is not written. Two arrays are the same or do not overlap: a thread reads its pack of all of
// them before it writes one.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "framework/bf16.h"
#include "framework/cuda/launch.h"

namespace antichain::cuda {

enum class Per { element, channel, row };

// Says how floats are rounded to Bf16: one by one as on the CPU, in 8 to 10 instructions, or two by one
// instruction of compute capability 8.0. The bits are the same, except that the instruction makes any NaN
// 0x7FFF.
enum class Rounding { as_on_the_cpu, in_pairs };

template <class T, bool is_read, bool is_written, Per per = Per::element,
          Rounding rounds = Rounding::as_on_the_cpu>
struct Array {
  using Number = T;
  static constexpr bool reads = is_read, writes = is_written;
  static constexpr Rounding rounding = rounds;
  static constexpr bool channels = per == Per::channel, rows = per == Per::row, packs = per == Per::element;
  T* at;
  bool loads = true;
  Index length = 1;  // of a row
};

template <class T>
Array<const T, true, false> read(const T* x) {
  return {x};
}
template <Rounding rounding = Rounding::as_on_the_cpu, class T>
Array<T, false, true, Per::element, rounding> write(T* y) {
  return {y};
}
template <class T>
Array<T, true, true> update(T* y) {
  return {y};
}
template <class T>
Array<T, true, true> into(T* y, bool adds) {
  return {y, adds};
}
template <class T>
Array<const T, true, false, Per::channel> channel(const T* x) {
  return {x};
}
template <class T>
Array<const T, true, false, Per::row> row(const T* x, int64_t length) {
  return {x, true, index_of(length)};
}

constexpr size_t pack_bytes = 16;

// Returns how many numbers a pack has.
template <class... A>
constexpr int pack_width() {
  size_t largest = 1;
  ((largest = A::packs ? std::max(largest, sizeof(typename A::Number)) : largest), ...);
  return int(pack_bytes / largest);
}

template <int width, class T>
constexpr size_t pack_alignment = std::min(pack_bytes, width * sizeof(T));

// Returns whether packs of so many numbers are aligned so that one request can read them.
template <int width, class... A>
bool aligned(const A&... arrays) {
  return (
      (A::rows || reinterpret_cast<uintptr_t>(arrays.at) % pack_alignment<width, typename A::Number> == 0) &&
      ...);
}

// A pack as it is stored in memory.
template <int width, class T>
struct alignas(pack_alignment<width, T>) Pack {
  T numbers[width];
};

template <int width, class T>
ANTICHAIN_DEVICE void load_pack(const T* from, float* to) {
  const Pack<width, T> pack = *reinterpret_cast<const Pack<width, T>*>(from);
  ANTICHAIN_UNROLL
  for (int j = 0; j < width; ++j) to[j] = float(pack.numbers[j]);
}

ANTICHAIN_DEVICE inline void round_pair(const float* from, Bf16* to) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(from[1]), "f"(from[0]));
  to[0].bits = uint16_t(both), to[1].bits = uint16_t(both >> 16);
#else
  constexpr uint16_t nan = 0x7FFF;
  for (int j = 0; j < 2; ++j) to[j].bits = from[j] == from[j] ? Bf16(from[j]).bits : nan;
#endif
}

template <int width, Rounding rounding = Rounding::as_on_the_cpu, class T>
ANTICHAIN_DEVICE void store_pack(const float* from, T* to) {
  Pack<width, T> pack;
  if constexpr (rounding == Rounding::in_pairs && std::is_same_v<T, Bf16> && width % 2 == 0) {
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; j += 2) round_pair(from + j, pack.numbers + j);
  } else {
    ANTICHAIN_UNROLL
    for (int j = 0; j < width; ++j) pack.numbers[j] = T(from[j]);
  }
  *reinterpret_cast<Pack<width, T>*>(to) = pack;
}

// Calls f.operator()<width>(): in packs of T where the arrays are aligned to them, otherwise number by
// number.
template <class T, class F>
void in_packs(bool fit, const F& f) {
  constexpr int width = int(pack_bytes / sizeof(T));
  fit ? f.template operator()<width>() : f.template operator()<1>();
}

// Does so where the channels of NHWC fill packs as well.
template <class T, class F, class... A>
void in_channel_packs(Index channels, const F& f, const A*... at) {
  constexpr int width = int(pack_bytes / sizeof(T));
  in_packs<T>(channels % width == 0 && aligned<width>(read(at)...), f);
}

// Holds a pack of each array in registers.
template <int width, class... A>
struct Packs {
  float numbers[sizeof...(A)][width] = {};

  // Loads the arrays that hold numbers per channel, or the other ones.
  template <bool of_channels>
  ANTICHAIN_DEVICE void load(Index first, const A&... arrays) {
    int a = 0;
    (load_one<of_channels>(first, arrays, numbers[a++]), ...);
  }
  ANTICHAIN_DEVICE void store(Index first, const A&... arrays) const {
    int a = 0;
    (store_one(first, arrays, numbers[a++]), ...);
  }
  // Calls f(before..., number j of every array's pack), with numbers per channel from `constant`.
  template <class F, class... Before>
  ANTICHAIN_DEVICE void apply(int j, const Packs& constant, const F& f, Before&&... before) {
    apply(j, constant, f, std::index_sequence_for<A...>(), before...);
  }

 private:
  template <bool of_channels, class Any>
  ANTICHAIN_DEVICE static void load_one(Index first, const Any& array, float* to) {
    if constexpr (Any::rows && !of_channels) {
      const float number = array.at ? float(array.at[first / array.length]) : 0.0f;
      ANTICHAIN_UNROLL
      for (int j = 0; j < width; ++j) to[j] = number;
    } else if constexpr (Any::reads && Any::channels == of_channels) {
      if (array.at && array.loads) return load_pack<width>(array.at + first, to);
      ANTICHAIN_UNROLL
      for (int j = 0; j < width; ++j) to[j] = 0;
    }
  }
  template <class Any>
  ANTICHAIN_DEVICE static void store_one(Index first, const Any& array, const float* from) {
    if constexpr (Any::writes)
      if (array.at) store_pack<width, Any::rounding>(from, array.at + first);
  }
  template <class F, size_t... a, class... Before>
  ANTICHAIN_DEVICE void apply(int j, const Packs& constant, const F& f, std::index_sequence<a...>,
                              Before&... before) {
    f(before..., number<A>(numbers[a][j], constant.numbers[a][j])...);
  }
  template <class Any>
  ANTICHAIN_DEVICE static auto& number(float& own, const float& constant) {
    if constexpr (Any::channels)
      return constant;
    else
      return own;
  }
};

}  // namespace antichain::cuda
