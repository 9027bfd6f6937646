// Kernels are templates over the type that activations are stored in; these functions choose the instance
// that a tensor's type needs.
#pragma once

#include <memory>

#include "framework/bf16.h"
#include "framework/error.h"
#include "framework/op.h"

namespace antichain {

// Calls f.template operator()<T>(), T being float or Bf16.
template <class F>
void with_type(DType dtype, F&& f) {
  if (dtype == DType::bf16) return f.template operator()<Bf16>();
  ANTICHAIN_CHECK(dtype == DType::f32, "activations are float32 or bf16");
  f.template operator()<float>();
}

// Makes a KernelFor<T>(arguments…), T as above.
template <template <class> class KernelFor, class... Arguments>
std::unique_ptr<Kernel> make_typed(DType dtype, const Arguments&... arguments) {
  std::unique_ptr<Kernel> kernel;
  with_type(dtype, [&]<class T>() { kernel = std::make_unique<KernelFor<T>>(arguments...); });
  return kernel;
}

}  // namespace antichain
