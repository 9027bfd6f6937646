// This file implements moments and stamps in a CUDA stream by events from a pool, so that a step creates
// none. Either may be released before it occurs.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/cuda/check.h"
#include "pipeline/device/device_streams.h"

namespace antichain::cuda {

class Events : public std::enable_shared_from_this<Events> {
 public:
  // With cudaEventDefault its events keep the time at which the device reached them.
  explicit Events(unsigned flags = cudaEventDisableTiming) : flags_(flags) {}
  ~Events() {
    for (cudaEvent_t event : free_) cudaEventDestroy(event);
  }

  // Returns the moment when all work now in the stream is done.
  Moment in(cudaStream_t stream) {
    Moment moment(take(), [pool = shared_from_this()](void* event) { pool->give_back(cudaEvent_t(event)); });
    ANTICHAIN_CUDA(cudaEventRecord(cudaEvent_t(moment.get()), stream));
    return moment;
  }

 private:
  cudaEvent_t take() {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
    cudaEvent_t event = nullptr;
    ANTICHAIN_CUDA(cudaEventCreateWithFlags(&event, flags_));
    return event;
  }
  void give_back(cudaEvent_t event) {
    std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

  const unsigned flags_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

inline void wait_for(cudaStream_t stream, const Moment& moment) {
  ANTICHAIN_CUDA(cudaStreamWaitEvent(stream, cudaEvent_t(moment.get()), 0));
}

inline bool has_come(const Moment& moment) {
  const cudaError_t answer = cudaEventQuery(cudaEvent_t(moment.get()));
  if (answer == cudaErrorNotReady) {
    cudaGetLastError();  // clears CUDA's last error: this result is none
    return false;
  }
  ANTICHAIN_CUDA(answer);
  return true;
}

// A SideStream runs beside computing. It is non-blocking, like the stream for computing, so the two wait for
// each other only where told to. Its blocks have priority over waiting blocks of computing, because a peer
// waits for what they send.
class SideStream {
 public:
  SideStream() {
    int least = 0, greatest = 0;
    ANTICHAIN_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    ANTICHAIN_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
  }
  ~SideStream() { cudaStreamDestroy(stream_); }  // its remaining work is still done
  SideStream(const SideStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace antichain::cuda
