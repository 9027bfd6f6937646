#include "framework/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace antichain {

uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t parts[] = {a, b};
  return XXH3_64bits(parts, sizeof parts);
}

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace antichain
