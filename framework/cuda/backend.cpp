#include "framework/cuda/backend.h"

#include <fmt/format.h>

#include "framework/cuda/absorb.h"
#include "framework/cuda/check.h"
#include "framework/cuda/elementwise.h"
#include "framework/cuda/list_on_device.h"
#include "framework/cuda/look.h"
#include "framework/cuda/update.h"

namespace antichain::cuda {
namespace {

int visible_devices() {
  int devices = 0;  // left as it is without a driver: any error means that there is no device
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

void close(Resources* r) {
  r->cudnn.reset();
  r->cublas.reset();
  if (r->stream) cudaStreamDestroy(r->stream);
  if (r->flag) cudaFree(r->flag);
  delete r;
}

// In exclusive-process mode a device serves only one process.
Error taken(int device, int local_rank, int devices) {
  return Error(
      fmt::format("GPU {} of this host, which rank {} of the host is to use, serves no other process than "
                  "the one that has it (compute mode exclusive-process)",
                  device, local_rank),
      fmt::format("start as many ranks on a host as it shows GPUs ({}), when nobody else uses them",
                  devices));
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(BackendOptions options) : name_(options.name), libraries_(options.libraries) {
    kernels_ = std::move(options.operators);
    updates_ = updates();
  }

  std::string name() const override { return name_; }

  std::string description() const override {
    int device = 0, runtime = 0;
    cudaDeviceProp properties{};
    ANTICHAIN_CUDA(cudaGetDevice(&device));
    ANTICHAIN_CUDA(cudaGetDeviceProperties(&properties, device));
    ANTICHAIN_CUDA(cudaRuntimeGetVersion(&runtime));
    return fmt::format("{}, CUDA {}.{}, {}", properties.name, runtime / 1000, runtime % 1000 / 10,
                       libraries_);
  }

  bool host_memory() const override { return false; }

  // The device is the calling rank's.
  void require(Precision precision) const override {
    if (precision == Precision::float32) return;
    int device = 0, major = 0;
    ANTICHAIN_CUDA(cudaGetDevice(&device));
    ANTICHAIN_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    if (major >= 8) return;
    throw Error(fmt::format("{} has no tensor cores for {}: they came with compute capability 8.0",
                            description(), name_of(precision)),
                "use --precision float32", ExitCode::usage);
  }

  // The memory is zeroed, as the host's is. cudaFree waits for work that still uses freed memory.
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override {
    void* memory = nullptr;
    const size_t size = size_t(std::max<int64_t>(bytes, 1));
    const cudaError_t allocation = cudaMalloc(&memory, size);
    if (allocation == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // the Error below reports it
      throw Error(fmt::format("the device has no {:.1f} MiB of memory left", double(bytes) / (1 << 20)),
                  "use a smaller --batch, more --microbatches, or more ranks", ExitCode::out_of_memory);
    }
    ANTICHAIN_CUDA(allocation);
    ANTICHAIN_CUDA(cudaMemsetAsync(memory, 0, size, cudaStreamPerThread));
    ANTICHAIN_CUDA(cudaStreamSynchronize(cudaStreamPerThread));  // no other stream waits for it
    return {static_cast<std::byte*>(memory), [](std::byte* p) { cudaFree(p); }};
  }

  void copy(const Context& context, const Tensor& from, const Tensor& to) const override {
    ANTICHAIN_CHECK(from.spec() == to.spec(), "a copy keeps shape, type and layout");
    const Stream stream = stream_of(context);
    ANTICHAIN_CUDA(cudaMemcpyAsync(to.raw(), from.raw(), size_t(from.bytes()), cudaMemcpyDefault, stream));
    ANTICHAIN_CUDA(cudaStreamSynchronize(stream));
  }

  // The local rank modulo the number of visible devices chooses the device: a scheduler may show each rank
  // only one.
  std::shared_ptr<void> open(int local_rank) const override {
    const int devices = visible_devices();
    ANTICHAIN_CHECK(devices > 0, "the module registers this backend only where there is a device");
    std::shared_ptr<Resources> opened(new Resources{.device = local_rank % devices}, close);
    const cudaError_t set = cudaSetDevice(opened->device);
    if (set == cudaErrorDevicesUnavailable) throw taken(opened->device, local_rank, devices);
    ANTICHAIN_CUDA(set);
    ANTICHAIN_CUDA(cudaStreamCreateWithFlags(&opened->stream, cudaStreamNonBlocking));
    ANTICHAIN_CUDA(cudaMalloc(&opened->flag, sizeof(int)));
    return opened;
  }

  void enter(const Context& context) const override {
    ANTICHAIN_CUDA(cudaSetDevice(resources(context).device));
  }

  std::optional<bool> all_finite(const Context& context, const Tensor& t) const override {
    if (t.dtype() == DType::i32 || t.dtype() == DType::u8) return std::nullopt;
    const Stream stream = stream_of(context);
    auto* const flag = static_cast<int32_t*>(resources(context).flag);
    int32_t found = 0;
    const std::vector<Piece> pieces = pieces_of({t});
    const Tensor list = list_on_device(context, pieces);
    ANTICHAIN_CUDA(cudaMemsetAsync(flag, 0, sizeof found, stream));
    look(stream, reinterpret_cast<const Piece*>(list.raw()), int64_t(pieces.size()), flag);
    ANTICHAIN_CUDA(cudaMemcpyAsync(&found, flag, sizeof found, cudaMemcpyDeviceToHost, stream));
    ANTICHAIN_CUDA(cudaStreamSynchronize(stream));
    return found == 0;
  }

  std::unique_ptr<Absorption> make_absorption(const Context& context,
                                              std::vector<Absorbed> nodes) const override {
    return absorb_in_one_launch(context, std::move(nodes));
  }

  void add(Context& context, const Tensor& x, const Tensor& y) const override {
    ANTICHAIN_CHECK(x.spec() == y.spec(), "add takes two tensors of one form");
    if (x.dtype() == DType::bf16)
      return cuda::add(stream_of(context), x.data<Bf16>(), y.data<Bf16>(), x.elements());
    ANTICHAIN_CHECK(x.dtype() == DType::f32, "what is added up is float32 or bf16");
    cuda::add(stream_of(context), x.data<float>(), y.data<float>(), x.elements());
  }

 private:
  const std::string name_, libraries_;
};

}  // namespace

std::string why_no_device() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return "this machine has no NVIDIA driver";
    return fmt::format("its driver is for CUDA {}.{}, older than the CUDA {}.{} of this program",
                       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  }
  if (status != cudaSuccess && status != cudaErrorNoDevice) return cudaGetErrorString(status);
  return devices > 0 ? "" : "this machine has no CUDA device";
}

std::unique_ptr<Backend> make_backend(BackendOptions options) {
  return std::make_unique<CudaBackend>(std::move(options));
}

}  // namespace antichain::cuda
