// Computes y ← x or y ← y + x, element by element: the backward of adding, joining and flattening.
#pragma once

#include "framework/cuda/passes.h"
#include "framework/op.h"

namespace antichain::cuda {

template <class T>
void move_elements(Stream stream, int64_t count, const T* from, T* to, Into how) {
  const bool adds = how == Into::accumulate;
  for_elements(
      stream, count, [=] ANTICHAIN_DEVICE(Index, float x, float& y) { y = adds ? y + x : x; }, read(from),
      into(to, adds));
}

}  // namespace antichain::cuda
