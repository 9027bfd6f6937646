// Loops over the elements in memory order, whatever the layout: threads share ranges of elements.
#pragma once

#include <algorithm>

#include "layers/cpu/activation.h"

namespace antichain::cpu {

// Calls f(begin, end) for ranges that do not depend on the thread count: 64 KiB, of which a second-level
// cache holds several.
template <class F>
void for_each_range(int64_t count, int threads, F&& f) {
  constexpr int64_t range = 1 << 14;
  for_each_plane((count + range - 1) / range, threads,
                 [&](int64_t r) { f(r * range, std::min(count, (r + 1) * range)); });
}

}  // namespace antichain::cpu
