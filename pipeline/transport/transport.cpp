#include "pipeline/transport/transport.h"

#include <fmt/format.h>

namespace antichain {

std::string Transport::name_of(MessageKey key, int from, int to) const {
  return namer_ ? namer_(key, from, to)
                : fmt::format("message of channel {}, micro-batch {}", key.channel, key.microbatch);
}

Error Transport::wrong_size(MessageKey key, int from, int64_t expected_bytes, int64_t got_bytes) const {
  return Error(fmt::format("rank {} expects {} bytes for the {} from rank {}, but got {}", rank(),
                           expected_bytes, name_of(key, from, rank()), from, got_bytes),
               "the ranks do not hold the same graph", ExitCode::failure);
}

}  // namespace antichain
