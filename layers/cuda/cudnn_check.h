// Checks cuDNN's calls.
#pragma once

#include <cudnn.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "framework/error.h"

namespace antichain::cuda {

// Throws Error naming the call, cuDNN's name for the status, and what cuDNN says about the last failure.
// `more` is a way out to try first.
inline void check_cudnn(cudnnStatus_t status, const char* what, const std::string& more = "") {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> last{};
  cudnnGetLastErrorString(last.data(), last.size());
  throw Error(
      fmt::format("cuDNN can't {}: {} {}", what, cudnnGetErrorString(status), last.data()),
      more + "set CUDNN_LOGLEVEL_DBG=2 and CUDNN_LOGDEST_DBG=stderr to hear more, or use --device cpu");
}

}  // namespace antichain::cuda
