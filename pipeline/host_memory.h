// Memory of this host and this process, as the system tells it.
#pragma once

#include <cstdint>

namespace antichain {

// What this process may still take: the host's available memory (/proc/meminfo), or less where a control group (a
// container, a batch system) limits it.
int64_t available_memory_bytes();

int64_t resident_bytes();       // of this process, now
int64_t peak_resident_bytes();  // and at most, since the begin or since forget_peak()
void forget_peak();

}  // namespace antichain
