// Counter-based random numbers: a pure function of (key, counter), so that any rank draws any number of any
// stream without drawing the ones before it. Philox4x32-10: Salmon et al., "Parallel Random Numbers: As Easy
// as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace antichain {

class Philox {
 public:
  explicit Philox(uint64_t key) : key_(key) {}

  // Four independent 32-bit words.
  std::array<uint32_t, 4> words(uint64_t counter_low, uint64_t counter_high = 0) const;

  // In [0, 1), 24 bits.
  static float uniform(uint32_t word) { return float(word >> 8) * 0x1p-24f; }

 private:
  uint64_t key_;
};

// Mixes parts of a key ("weights of node X", seed, epoch, …) into one. Stable over machines and versions.
uint64_t mix(uint64_t a, uint64_t b);
uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0);  // XXH3, 64 bits

}  // namespace antichain
