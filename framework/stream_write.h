// Writes to a standard stream whatever its state: its disk may be full, or its pipe's reader may have gone or
// may pause.
#pragma once

#include <cstddef>
#include <functional>

namespace antichain {

// Writes all bytes to the descriptor, waiting while a reader pauses, for at most `patience_s` seconds if that
// is not 0. Returns 0, or the errno of the failure (ETIMEDOUT: the patience ended). Throws nothing.
int write_to_stream(int descriptor, const char* bytes, size_t count, double patience_s = 0) noexcept;

// Sets a function that this thread calls now and then while it waits for a reader, so that the watchdog does
// not take the rank for one that hangs.
void while_writing_waits(std::function<void()> beat);

}  // namespace antichain
