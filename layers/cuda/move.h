// y ← x or y ← y + x, element by element: what adding, joining and flattening come down to backwards.
#pragma once

#include "framework/cuda/launch.h"
#include "framework/op.h"

namespace antichain::cuda {

template <class T>
void move_elements(Stream stream, int64_t count, const T* from, T* to, Into into) {
  const bool adds = into == Into::accumulate;
  for_each(stream, count,
           [=] ANTICHAIN_DEVICE(Index i) { to[i] = adds ? T(float(to[i]) + float(from[i])) : from[i]; });
}

}  // namespace antichain::cuda
