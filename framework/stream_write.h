// These functions write to a standard stream whatever its state: a full disk, a pipe whose reader has gone or
// pauses.
#pragma once

#include <cstddef>
#include <functional>

namespace antichain {

// Writes all bytes to the descriptor, waiting while a reader pauses; for so many seconds at most, where
// `patience_s` is not 0. Returns 0, or the errno of what failed (ETIMEDOUT: the patience ended). Throws
// nothing.
int write_to_stream(int descriptor, const char* bytes, size_t count, double patience_s = 0) noexcept;

// Sets what this thread calls now and then while it waits for a reader, so that nobody takes it for a rank
// that hangs.
void while_writing_waits(std::function<void()> beat);

}  // namespace antichain
