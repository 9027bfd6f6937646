// The streams that two modules bring in: copies libantichain_cuda.so (module.cpp), messages
// libantichain_nccl.so (nccl_module.cpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"

namespace antichain::cuda {

// Two side streams: copies to the host and to the device go on at the same time.
std::unique_ptr<CopyStream> make_copy_stream(const Context&);
// In the context's own stream; stamps are CUDA events, ranges NVTX's.
std::unique_ptr<DeviceStep> make_step_stream(const Context&);

// Between ranks that name the same process by addresses, else by CUDA IPC; a rank's process has a name (one
// word) that no other one has.
std::unique_ptr<PeerStream> make_peer_stream(const Context&, const std::string& process);

// The GPU's place on the bus ("0000:3b:00.0"), by which NCCL, too, tells whether ranks share one; equal for
// parts of a divided GPU, and whatever number each rank sees it as.
std::string device_name(const Context&);
int visible_devices();
int64_t free_device_bytes(const Context&);  // now, of the context's GPU

// Collective over the job: rank 0's ids reach all by broadcast, and each rank waits until it is connected
// with `peers`, for most of the watchdog's limit (at most 5 minutes); `look` is called meanwhile, and may
// throw. Error naming what NCCL says.
std::unique_ptr<MessageStream> make_nccl_stream(const Context&, Transport& job, const std::vector<int>& peers,
                                                const std::function<void()>& look);
std::string nccl_version();  // "NCCL 2.28.9"

}  // namespace antichain::cuda
