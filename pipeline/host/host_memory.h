// Memory of this host and this process, as the system tells it.
#pragma once

#include <cstdint>
#include <system_error>

#include "framework/error.h"

namespace antichain {

// What this process may still take: the host's available memory (/proc/meminfo), or less where a control
// group (a container, a batch system) limits it.
int64_t available_memory_bytes();

// What this process may still add to its addresses (ulimit -v), but for what libraries and threads take by
// the way; the largest number where nothing limits it.
int64_t address_space_bytes();
// Error (ExitCode::out_of_memory) where so many more threads don't fit into it.
void check_address_space(int threads);

// What a standard library's error says to a user: that the system starts no more threads, where that is it
// (out_of_memory).
Error beyond_limits(const std::system_error&);

int64_t resident_bytes();       // of this process, now
int64_t peak_resident_bytes();  // and at most, since the begin or since forget_peak()
void forget_peak();

}  // namespace antichain
