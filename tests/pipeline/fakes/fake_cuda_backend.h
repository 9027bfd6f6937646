// This is the CUDA backend itself (framework/cuda/backend.cpp), linked with the stand-ins of the runtime:
// memory, copies, streams and devices go its way. Operators are those of fake_gpu.h. As with cuDNN, a
// convolution that is lowered uses the device.
#pragma once

#include <memory>

#include "framework/backend.h"

namespace antichain::test {

std::unique_ptr<Backend> make_fake_cuda_backend(const std::string& name);

}  // namespace antichain::test
