// Adds up the gradients of one plane where windows overlap, in float32, and stores the sums once. A plane
// that is stored as float32 is added up in place, any other in scratch of each thread.
#pragma once

#include <omp.h>

#include <algorithm>
#include <type_traits>

#include "framework/context.h"
#include "layers/cpu/activation.h"

namespace antichain::cpu {

template <class T>
class PlaneSum {
 public:
  PlaneSum(Context& context, int64_t plane) : plane_(plane) {
    if constexpr (!in_place)
      scratch_ = reinterpret_cast<float*>(context.workspace(context.threads() * bytes(plane)));
  }

  // Returns the workspace that the lowering asks for, for the current number of threads.
  static int64_t workspace_bytes(int64_t plane) {
    return in_place ? 0 : omp_get_max_threads() * bytes(plane);
  }

  // Calls f(zeros to add to) on the calling thread.
  template <class F>
  void operator()(T* dx, F&& f) const {
    float* sum = zeros(dx);
    f(sum);
    if constexpr (!in_place)
      for (int64_t i = 0; i < plane_; ++i) dx[i] = T(sum[i]);
  }

 private:
  static constexpr bool in_place = std::is_same_v<T, float>;
  static int64_t bytes(int64_t plane) { return plane * int64_t(sizeof(float)); }

  float* zeros(T* dx) const {
    float* sum;
    if constexpr (in_place)
      sum = dx;
    else
      sum = scratch_ + omp_get_thread_num() * plane_;
    std::fill_n(sum, plane_, 0.0f);
    return sum;
  }

  int64_t plane_;
  float* scratch_ = nullptr;
};

// Returns the workspace that PlaneSum needs for tensors like x.
inline int64_t plane_sum_bytes(const Shape& x, Layout layout, Precision precision) {
  int64_t bytes = 0;
  const int64_t plane = Activation({.shape = x, .layout = layout}).plane();
  with_type(storage(precision), [&]<class T>() { bytes = PlaneSum<T>::workspace_bytes(plane); });
  return bytes;
}

}  // namespace antichain::cpu
