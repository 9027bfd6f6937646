// Makes a backend, a context of it, and tensors that are copied there and back, to test what a device does
// besides operators.
#pragma once

#include <memory>

#include "framework/backend.h"
#include "framework/random.h"

namespace antichain::harness {

class DeviceMemory {
 protected:
  void open(const Backend& device) {
    device_ = &device;
    context_ = std::make_unique<Context>(device);
    device.enter(*context_);
  }
  Tensor there(const Tensor& host) const {
    const Tensor tensor = device_->tensor(host.spec());
    device_->copy(*context_, host, tensor);
    return tensor;
  }
  Tensor here(const Tensor& tensor) const {
    const Tensor host = Tensor::host(tensor.spec());
    device_->copy(*context_, tensor, host);
    return host;
  }

  const Backend* device_ = nullptr;
  std::unique_ptr<Context> context_;
};

// float32 in [−1, 1).
inline Tensor random_tensor(int64_t count, uint64_t key) {
  const Tensor t = Tensor::host({.shape = {count}});
  for (int64_t i = 0; i < count; ++i)
    t.data<float>()[i] = 2 * Philox::uniform(Philox(key).words(uint64_t(i))[0]) - 1;
  return t;
}

}  // namespace antichain::harness
