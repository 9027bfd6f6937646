// KeyedDraws are the random numbers of one augmentation for one image, or for one batch of an epoch: a
// sequence that depends on (seed, stream, epoch, number) alone, so that any rank draws the same, and no
// augmentation shifts another's draws.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "framework/random.h"

namespace antichain {

class KeyedDraws {
 public:
  KeyedDraws(uint64_t seed, std::string_view stream, int64_t epoch, int64_t number)
      : key_(mix(seed, hash_bytes(stream))), epoch_(uint64_t(epoch)), number_(uint64_t(number)) {}

  uint32_t word() {
    if (used_ % 4 == 0) words_ = Philox(used_ == 0 ? key_ : mix(key_, used_)).words(number_, epoch_);
    return words_[used_++ % 4];
  }
  // Returns 0 … places − 1. The bias is below places / 2^32.
  int below(int places) { return int((uint64_t(word()) * uint64_t(places)) >> 32); }
  bool coin() { return (word() >> 31) != 0; }
  // Returns a number of [low, high).
  double between(double low, double high) { return low + (high - low) * (double(word()) * 0x1p-32); }

 private:
  const uint64_t key_, epoch_, number_;
  std::array<uint32_t, 4> words_{};
  uint64_t used_ = 0;
};

}  // namespace antichain
