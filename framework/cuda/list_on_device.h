// Brings a list of plain values to the device's memory, where kernels read it in every step.
#pragma once

#include <cstring>
#include <vector>

#include "framework/backend.h"
#include "framework/context.h"
#include "framework/tensor.h"

namespace antichain::cuda {

// Returns the bytes of the values in the device's memory. They are there when the call returns.
template <class T>
Tensor list_on_device(const Context& context, const std::vector<T>& values) {
  const TensorSpec spec{{int64_t(values.size() * sizeof(T))}, DType::u8};
  const Tensor host = Tensor::host(spec), device = context.backend().tensor(spec);
  std::memcpy(host.raw(), values.data(), size_t(spec.bytes()));
  context.backend().copy(context, host, device);
  return device;
}

}  // namespace antichain::cuda
