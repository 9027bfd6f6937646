#include <fmt/format.h>

#include <algorithm>

#include "framework/cuda/resources.h"
#include "pipeline/cuda/events.h"
#include "pipeline/cuda/streams.h"

namespace antichain::cuda {
namespace {

class CudaCopies : public CopyStream {
 public:
  explicit CudaCopies(const Context& context) : context_(context) {}
  // The owners release their tensors once this object is gone.
  ~CudaCopies() override {
    cudaStreamSynchronize(outward_);
    cudaStreamSynchronize(inward_);
  }

  Moment computed() override { return events_->in(compute()); }
  void compute_after(const Moment& moment) override { wait_for(compute(), moment); }
  bool reached(const Moment& moment) override { return has_come(moment); }

  std::shared_ptr<std::byte> page_locked(int64_t bytes) override {
    void* memory = nullptr;
    // The memory is portable: with --local, another rank's thread may use it with its own device.
    if (cudaHostAlloc(&memory, size_t(std::max<int64_t>(bytes, 1)), cudaHostAllocPortable) != cudaSuccess) {
      cudaGetLastError();
      throw Error(fmt::format("the host has no {:.1f} MiB of page-locked memory", double(bytes) / (1 << 20)),
                  "use more --microbatches, or fewer ranks on this host", ExitCode::out_of_memory);
    }
    return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFreeHost(p); }};
  }

  Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) override {
    return copy(from, host, cudaMemcpyDeviceToHost, outward_, after);
  }
  Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) override {
    return copy(host, to, cudaMemcpyHostToDevice, inward_, after);
  }

 private:
  // The stream that the context computes in now.
  cudaStream_t compute() const { return stream_of(context_); }

  Moment copy(const Tensor& from, const Tensor& to, cudaMemcpyKind kind, cudaStream_t stream,
              const Moment& after) {
    ANTICHAIN_CHECK(from.bytes() == to.bytes(), "both ends have one size");
    wait_for(stream, after);
    ANTICHAIN_CUDA(cudaMemcpyAsync(to.raw(), from.raw(), size_t(from.bytes()), kind, stream));
    return events_->in(stream);
  }

  const Context& context_;
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  SideStream outward_, inward_;
};

}  // namespace

std::unique_ptr<CopyStream> make_copy_stream(const Context& context) {
  return std::make_unique<CudaCopies>(context);
}

std::string device_name(const Context& context) {
  char bus_id[32] = "";
  ANTICHAIN_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, resources(context).device));
  return bus_id;
}

int visible_devices() {
  int devices = 0;
  ANTICHAIN_CUDA(cudaGetDeviceCount(&devices));
  return devices;
}

int64_t free_device_bytes(const Context&) {
  size_t free = 0, all = 0;
  ANTICHAIN_CUDA(cudaMemGetInfo(&free, &all));
  return int64_t(free);
}

}  // namespace antichain::cuda
