// This is the CUDA backend without its operators. It has memory, copies, streams, and the passes that every
// stage needs.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "framework/backend.h"

namespace antichain::cuda {

struct BackendOptions {
  std::string name;       // "cuda"
  std::string libraries;  // "cuDNN 9.19.0, cuBLAS 13.0.2, float32": goes into its description
  std::map<std::string, KernelEntry, std::less<>> operators;
};

// Returns the reason why no CUDA device can be used here, or "".
std::string why_no_device();

std::unique_ptr<Backend> make_backend(BackendOptions);

}  // namespace antichain::cuda
