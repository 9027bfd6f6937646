#include "framework/cuda/elementwise.h"

#include <cmath>

#include "framework/cuda/passes.h"

namespace antichain::cuda {
namespace {

template <class T>
void add_numbers(Stream stream, const T* x, T* y, int64_t count) {
  for_elements(
      stream, count, [=] ANTICHAIN_DEVICE(Index, float a, float& b) { b += a; }, read(x), update(y));
}

// Every thread that finds one writes the same 1, so that the race is harmless.
template <class T>
void find(Stream stream, const T* values, int64_t count, int* found) {
  for_elements(
      stream, count,
      [=] ANTICHAIN_DEVICE(Index, float value) {
        if (!(fabsf(value) <= 3.402823466e38f)) *found = 1;
      },
      read(values));
}

}  // namespace

void add(Stream stream, const float* x, float* y, int64_t count) { add_numbers(stream, x, y, count); }
void add(Stream stream, const Bf16* x, Bf16* y, int64_t count) { add_numbers(stream, x, y, count); }

void find_non_finite(Stream stream, const float* values, int64_t count, int* found) {
  find(stream, values, count, found);
}

void find_non_finite(Stream stream, const Bf16* values, int64_t count, int* found) {
  find(stream, values, count, found);
}

void find_non_finite(Stream stream, const double* values, int64_t count, int* found) {
  for_each(stream, count, [=] ANTICHAIN_DEVICE(Index i) {
    if (!(fabs(values[i]) <= 1.7976931348623157e308)) *found = 1;
  });
}

}  // namespace antichain::cuda
