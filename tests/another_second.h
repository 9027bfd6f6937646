// This waits until the clock has reached another second, so that what is written before and after differs
// where it holds a date.
#pragma once

#include <unistd.h>

#include <ctime>

namespace antichain {

inline void wait_for_another_second() {
  for (const std::time_t now = std::time(nullptr); std::time(nullptr) == now;) ::usleep(10'000);
}

}  // namespace antichain
