// Times kernels on one thread, for the benchmarks of this folder.
#pragma once

#include <time.h>

#include <algorithm>
#include <functional>

#include "framework/bf16.h"
#include "framework/initialise.h"
#include "framework/tensor.h"

namespace antichain {

// Returns a tensor of normal numbers, which the name keys.
inline Tensor filled(const Shape& shape, DType dtype, Layout layout, const char* name) {
  const Tensor plain = Tensor::host({shape}), typed = Tensor::host({shape, dtype}),
               placed = Tensor::host({shape, dtype, layout});
  initialise(plain, Initialiser::normal(1), 3, name);
  for (int64_t i = 0; i < plain.elements(); ++i) {
    if (dtype == DType::bf16)
      typed.data<Bf16>()[i] = Bf16(plain.data<float>()[i]);
    else
      typed.data<float>()[i] = plain.data<float>()[i];
  }
  relayout(typed, placed);
  return placed;
}

// The thread's own time leaves out what other processes took of the core.
inline double thread_s() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// Returns the microseconds of the fastest of the calls that fit into `seconds`, at least three.
inline double fastest_us(double seconds, const std::function<void()>& call) {
  double best = 1e30, total = 0;
  for (int calls = 0; calls < 4 || total < seconds; ++calls) {
    const double start = thread_s();
    call();
    const double took = thread_s() - start;
    if (calls > 0) best = std::min(best, took);  // the first one warms up
    total += took;
  }
  return best * 1e6;
}

}  // namespace antichain
