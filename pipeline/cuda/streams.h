// These are the streams of two modules: libantichain_cuda.so brings copies (module.cpp), libantichain_nccl.so
// brings messages (nccl_module.cpp).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"

namespace antichain::cuda {

// Makes two side streams, so that copies to the host and to the device run at the same time.
std::unique_ptr<CopyStream> make_copy_stream(const Context&);
// Works in the context's own stream. Stamps are CUDA events, and ranges are NVTX's.
std::unique_ptr<DeviceStep> make_step_stream(const Context&);

// Returns the GPU's bus address ("0000:3b:00.0"), by which NCCL, too, tells whether ranks share a GPU. It is
// equal for parts of a divided GPU, and independent of each rank's numbering.
std::string device_name(const Context&);
int visible_devices();
int64_t free_device_bytes(const Context&);  // now, of the context's GPU

// Collective over the job: rank 0 broadcasts the ids, and each rank waits until it is connected with all
// others, for most of the watchdog's limit (at most 5 minutes). Meanwhile it calls `look`, which may throw.
// Throws Error with NCCL's message.
std::unique_ptr<MessageStream> make_nccl_stream(const Context&, Job&, const std::function<void()>& look);
std::string nccl_version();  // "NCCL 2.28.9"

}  // namespace antichain::cuda
