// Philox draws counter-based random numbers: a pure function of (key, counter), so that any rank draws any
// number of any stream without drawing the ones before it. Philox4x32-10: Salmon et al., "Parallel Random
// Numbers: As Easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace antichain {

class Philox {
 public:
  explicit constexpr Philox(uint64_t key) : key_(key) {}

  // Returns four independent 32-bit words. It is constexpr, so that device code draws the same words.
  constexpr std::array<uint32_t, 4> words(uint64_t counter_low, uint64_t counter_high = 0) const {
    // Constants of Salmon et al. 2011, table 2 and section 3.3.
    constexpr uint64_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
    constexpr uint32_t w0 = 0x9E3779B9, w1 = 0xBB67AE85;
    uint32_t c[4] = {uint32_t(counter_low), uint32_t(counter_low >> 32), uint32_t(counter_high),
                     uint32_t(counter_high >> 32)};
    uint32_t k0 = uint32_t(key_), k1 = uint32_t(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = m0 * c[0], p1 = m1 * c[2];
      const uint32_t next[4] = {uint32_t(p1 >> 32) ^ c[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k1,
                                uint32_t(p0)};
      for (int i = 0; i < 4; ++i) c[i] = next[i];
      k0 += w0;
      k1 += w1;
    }
    return {c[0], c[1], c[2], c[3]};
  }

  // Returns a number in [0, 1) with 24 bits.
  static constexpr float uniform(uint32_t word) { return float(word >> 8) * 0x1p-24f; }

 private:
  uint64_t key_;
};

// Mixes parts of a key ("weights of node X", seed, epoch, …) into one. The result is stable over machines and
// versions: it is XXH3's 64-bit hash of these 16 bytes (Yann Collet, xxHash, specification 0.8), written out
// because device code needs it, too.
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t low = a ^ 0x6782737bea4239b9, high = b ^ 0xaf56bc3b0996523a;  // of XXH3's secret
  // Folds the product of both, 128 bits, by halves, because not every platform has a type of 128 bits.
  const uint64_t l0 = uint32_t(low), l1 = low >> 32, h0 = uint32_t(high), h1 = high >> 32;
  const uint64_t middle = (l0 * h0 >> 32) + uint32_t(l1 * h0) + l0 * h1;
  const uint64_t product_high = l1 * h1 + (l1 * h0 >> 32) + (middle >> 32);
  uint64_t swapped = 0;
  for (int byte = 0; byte < 8; ++byte) swapped |= (low >> (8 * byte) & 0xFF) << (8 * (7 - byte));
  uint64_t hash = 16 + swapped + high + ((low * high) ^ product_high);
  hash = (hash ^ (hash >> 37)) * 0x165667919E3779F9;
  return hash ^ (hash >> 32);
}
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);  // XXH3, 64 bits

}  // namespace antichain
