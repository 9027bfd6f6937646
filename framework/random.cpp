#include "framework/random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace antichain {

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace antichain
