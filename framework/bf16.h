// bfloat16: the upper half of a float32. It has float32's range and 8 bits of significand (Kalamkar et al., "A Study of
// BFLOAT16 for Deep Learning Training", arXiv 2019), so nothing needs to be scaled to fit.
//
// A number to store, not to compute with: arithmetic happens in float32, and its result is rounded to nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace antichain {

struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  explicit Bf16(float value) : bits(rounded(std::bit_cast<uint32_t>(value))) {}
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }

 private:
  // Adding just less than half of the last kept digit, or just half where that digit is odd, carries into it where it should.
  // A NaN's significand could lose its only digit, or overflow: it gets one that stays.
  static uint16_t rounded(uint32_t value) {
    const bool nan = (value & 0x7FFF'FFFFu) > 0x7F80'0000u;
    return uint16_t((nan ? value | 0x40'0000u : value + 0x7FFFu + (value >> 16 & 1)) >> 16);
  }
};

}  // namespace antichain
