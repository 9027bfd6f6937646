#include "framework/files/hash_stream.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace antichain {

struct HashStream::State {
  XXH3_state_t xxh3;  // aligned as it asks for
};

HashStream::HashStream() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
HashStream::~HashStream() = default;
HashStream::HashStream(HashStream&&) noexcept = default;
void HashStream::add(std::string_view bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}
uint64_t HashStream::value() const { return XXH3_64bits_digest(&state_->xxh3); }

}  // namespace antichain
