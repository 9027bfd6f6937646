// This file asks the system about the memory of this host and of this process.
#pragma once

#include <cstdint>
#include <system_error>

#include "framework/error.h"

namespace antichain {

// Returns how much this process may still allocate: the host's available memory (/proc/meminfo), or less
// where a control group (a container, a batch system) limits it.
int64_t available_memory_bytes();

// Returns how much address space this process may still use (ulimit -v), less a reserve for libraries and
// threads. Without a limit it returns the largest number.
int64_t address_space_bytes();
// Throws Error (ExitCode::out_of_memory) where that many more threads don't fit into it.
void check_address_space(int threads);

// Translates a standard library's error for users. An error from starting a thread becomes out_of_memory and
// says that the system starts no more threads.
Error beyond_limits(const std::system_error&);

// These leave out pages of files, such as the code of libraries, which the system shares and can drop.
int64_t resident_bytes();       // of this process, now
int64_t peak_resident_bytes();  // the most, since the start or since forget_peak()
void forget_peak();
void return_free_memory();  // that the allocator keeps, to the system

}  // namespace antichain
