#include "framework/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace antichain {

std::array<uint32_t, 4> Philox::words(uint64_t counter_low, uint64_t counter_high) const {
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

uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t parts[] = {a, b};
  return XXH3_64bits(parts, sizeof parts);
}

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace antichain
