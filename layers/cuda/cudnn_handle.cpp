#include "layers/cuda/cudnn_handle.h"

#include "layers/cuda/cudnn_check.h"

namespace antichain::cuda {

cudnnHandle_t cudnn_of(Resources& own) {
  if (!own.cudnn) {
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnnCreate(&handle), "start");
    std::shared_ptr<void> owned(handle, [](void* h) { cudnnDestroy(static_cast<cudnnHandle_t>(h)); });
    check_cudnn(cudnnSetStream(handle, own.stream), "take a stream");
    own.cudnn = std::move(owned);
  }
  return static_cast<cudnnHandle_t>(own.cudnn.get());
}

}  // namespace antichain::cuda
