#include "framework/cuda/elementwise.h"

#include "framework/cuda/passes.h"

namespace antichain::cuda {
namespace {

template <class T>
void add_numbers(Stream stream, const T* x, T* y, int64_t count) {
  for_elements(
      stream, count, [=] ANTICHAIN_DEVICE(Index, float a, float& b) { b += a; }, read(x), update(y));
}

}  // namespace

void add(Stream stream, const float* x, float* y, int64_t count) { add_numbers(stream, x, y, count); }
void add(Stream stream, const Bf16* x, Bf16* y, int64_t count) { add_numbers(stream, x, y, count); }

}  // namespace antichain::cuda
