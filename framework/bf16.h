// bfloat16 is the upper half of a float32. It has float32's range and 8 bits of significand (Kalamkar et al.,
// "A Study of BFLOAT16 for Deep Learning Training", arXiv 2019), so nothing needs to be scaled to fit.
//
// Bf16 is a type for storage, not for computing: arithmetic happens in float32, and its result is rounded to
// nearest, ties to even. The conversions are constexpr, so that device code rounds the same way.
#pragma once

#include <bit>
#include <cstdint>

namespace antichain {

struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  explicit constexpr Bf16(float value) : bits(rounded(std::bit_cast<uint32_t>(value))) {}
  constexpr operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }

 private:
  // Adding just less than half of the last kept digit, or just half where that digit is odd, carries into it
  // where it should. A NaN could lose its only significand digit or overflow, so it gets a digit that stays.
  static constexpr uint16_t rounded(uint32_t value) {
    const uint32_t nan = -uint32_t((value & 0x7FFF'FFFFu) > 0x7F80'0000u);  // a mask: loops become vectors
    return uint16_t(((nan & (value | 0x40'0000u)) | (~nan & (value + 0x7FFFu + (value >> 16 & 1)))) >> 16);
  }
};

}  // namespace antichain
