#include "tests/pipeline/fakes/fake_gpu.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>

#include "data/cuda/make_images.h"
#include "framework/cuda/absorb.h"
#include "framework/cuda/look.h"
#include "framework/cuda/resources.h"
#include "framework/cuda/step_numbers.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "pipeline/cuda/streams.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_devices.h"

namespace antichain {

namespace test {
namespace {

// Work in a stream keeps no memory: whoever gave it has to.
Tensor unowned(const Tensor& t) {
  return t ? Tensor(t.spec(), std::shared_ptr<std::byte>(std::shared_ptr<void>(), t.raw())) : Tensor();
}

}  // namespace
}  // namespace test

// What two files of the CUDA module have, compiled for the host under other names: here it goes into a
// stream.
namespace cuda {
void set_numbers(Stream stream, const StepNumbers& numbers, StepNumbers* to) {
  test::fake_cuda::launch(stream, [=] { *to = numbers; });
}
void look(Stream stream, const Piece* pieces, int64_t count, int32_t* found) {
  test::fake_cuda::launch(stream, [=] { look_now(nullptr, pieces, count, found); });
}
void make_images(Stream stream, const Tensor& raw, const Tensor& table, const Tensor& images) {
  using test::unowned;
  test::fake_cuda::launch(stream, [raw = unowned(raw), table = unowned(table), images = unowned(images)] {
    make_images_now(nullptr, raw, table, images);
  });
}
}  // namespace cuda

namespace test {
namespace {

const Backend& cpu() {
  register_cpu_backend();
  return backend("cpu");
}

using Tensors = std::vector<Tensor>;
Tensors unowned(std::span<const Tensor> tensors) {
  Tensors all;
  for (const Tensor& t : tensors) all.push_back(unowned(t));
  return all;
}

double seconds(const std::string& what) {
  const auto& takes_s = FakeGpu::the().takes_s;
  return takes_s ? takes_s(what) : 0;
}

void launch(const Context& context, double takes_s, std::function<void()> work) {
  const auto kernel = [&context, work = std::move(work)] {
    cpu().enter(context);  // this thread's number of threads
    work();
  };
  fake_cuda::launch(cuda::stream_of(context), kernel, takes_s);
}

// What stands in the device's memory counts when the work is done, not when it is launched.
DropoutKey now(DropoutKey key) {
  if (key.live) key.step = key.live->step;
  return key;
}
Rate now(const Rate& rate) { return rate.live ? Rate(rate.live->rate, rate.live->step) : rate; }

class LateKernel : public Kernel {
 public:
  LateKernel(std::string type, std::unique_ptr<Kernel> kernel)
      : type_(std::move(type)), kernel_(std::move(kernel)) {}

  void forward(Context& context, const Forward& f) const override {
    launch(context, seconds(type_ + " forward"),
           [this, &context, call = f, x = unowned(f.x), params = unowned(f.params),
            prepared = unowned(f.prepared), buffers = unowned(f.buffers), y = unowned(f.y),
            stash = unowned(f.stash), statistics = unowned(f.statistics)]() mutable {
             call.x = x, call.params = params, call.prepared = prepared, call.buffers = buffers;
             call.y = y, call.stash = stash, call.statistics = statistics, call.dropout = now(call.dropout);
             kernel_->forward(context, call);
           });
  }
  void backward(Context& context, const Backward& b) const override {
    double takes_s = 0;
    if (!b.dx.empty() || inseparable()) takes_s += seconds(type_ + " input");
    if (!b.dw.empty() && !inseparable()) takes_s += seconds(type_ + " weight");
    launch(context, takes_s,
           [this, &context, call = b, x = unowned(b.x), params = unowned(b.params),
            prepared = unowned(b.prepared), y = unowned(b.y), dy = unowned(b.dy), stash = unowned(b.stash),
            statistics = unowned(b.statistics), dx = unowned(b.dx), dw = unowned(b.dw),
            into = std::vector<Into>(b.dx_into.begin(), b.dx_into.end())]() mutable {
             call.x = x, call.params = params, call.prepared = prepared, call.y = y, call.dy = dy;
             call.stash = stash, call.statistics = statistics, call.dx = dx, call.dw = dw,
             call.dx_into = into;
             call.dropout = now(call.dropout);
             kernel_->backward(context, call);
           });
  }
  void prepare(Context& context, std::span<const Tensor> params,
               std::span<const Tensor> prepared) const override {
    launch(context, seconds(""),
           [this, &context, a = unowned(params), b = unowned(prepared)] { kernel_->prepare(context, a, b); });
  }
  std::optional<RunningAverages> running_averages() const override { return kernel_->running_averages(); }
  bool inseparable() const override { return kernel_->inseparable(); }

 private:
  const std::string type_;
  const std::unique_ptr<Kernel> kernel_;
};

}  // namespace

class LateUpdate : public Update {
 public:
  LateUpdate(std::unique_ptr<Update> update, size_t parameters)
      : update_(std::move(update)), parameters_(parameters) {}
  void run(Context& context, const Rate& rate) const override {
    launch(context, double(parameters_) * seconds("update"),
           [this, &context, rate] { update_->run(context, now(rate)); });
  }

 private:
  const std::unique_ptr<Update> update_;
  const size_t parameters_;
};

const std::vector<const char*> FakeGpu::operators = {"adaptive_average_pool",
                                                     "add",
                                                     "average_pool",
                                                     "batch_norm",
                                                     "concat",
                                                     "conv2d",
                                                     "dropout",
                                                     "flatten",
                                                     "reorder",
                                                     "global_average_pool",
                                                     "linear",
                                                     "max_pool",
                                                     "relu",
                                                     "softmax_cross_entropy"};

FakeGpu::FakeGpu() {
  for (const char* type : operators) {
    KernelEntry entry = cpu().entry(type);
    entry.make = [type, make = entry.make](const Op& op, std::span<const TensorSpec> x,
                                           const Lowering& lowering) {
      return std::make_unique<LateKernel>(type, make(op, x, lowering));
    };
    kernels_[type] = entry;
  }
  for (const char* name : {"adamw", "ema", "muon", "sgd"})
    updates_[name] = [](std::shared_ptr<const Optimiser> optimiser, const Context& context,
                        std::vector<Trained> trained) {
      const size_t parameters = trained.size();
      return std::make_unique<LateUpdate>(
          cpu().make_update(std::move(optimiser), context, std::move(trained)), parameters);
    };
}

FakeGpu& FakeGpu::the() {
  static FakeGpu* const gpu = [] {
    auto made = std::make_unique<FakeGpu>();
    FakeGpu* raw = made.get();
    register_backend(std::move(made));
    register_device_streams("fake_gpu",
                            {.device = cuda::device_name,
                             .process = [] { return "process-" + std::to_string(fake_cuda::this_process()); },
                             .copies =
                                 [raw](const Context& context) {
                                   auto copies = cuda::make_copy_stream(context);
                                   return raw->around_copies ? raw->around_copies(std::move(copies))
                                                             : std::move(copies);
                                 },
                             .step = cuda::make_step_stream});
    return raw;
  }();
  return *gpu;
}

void FakeGpu::require(Precision precision) const { cpu().require(precision); }

// Kernels are made for the number of threads that they are to run with.
void FakeGpu::enter(const Context& context) const { cpu().enter(context); }

// Freeing waits for the device, as cudaFree does.
std::shared_ptr<std::byte> FakeGpu::allocate(int64_t bytes) const {
  fake_cuda::allocates();
  auto memory = fake_cuda::device_memory(bytes);
  std::byte* raw = memory.get();
  return {raw, [memory = std::move(memory)](std::byte*) mutable {
            fake_cuda::drain();
            memory.reset();
          }};
}
std::shared_ptr<void> FakeGpu::open(int local_rank) const {
  CUstream_st* const stream = fake_cuda::make_stream();
  stream_ = stream;
  return {new cuda::Resources{.device = local_rank, .stream = stream}, [](cuda::Resources* r) {
            cudaStreamDestroy(r->stream);
            delete r;
          }};
}
void FakeGpu::copy(const Context& context, const Tensor& from, const Tensor& to) const {
  ++copies_;
  fake_cuda::drain(cuda::stream_of(context));
  std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
}
std::unique_ptr<Absorption> FakeGpu::make_absorption(const Context& context,
                                                     std::vector<Absorbed> nodes) const {
  return cuda::absorb_in_one_launch(context, std::move(nodes));
}
void FakeGpu::add(Context& context, const Tensor& x, const Tensor& y) const {
  launch(context, seconds("add"), [&context, x = unowned(x), y = unowned(y)] { cpu().add(context, x, y); });
}
}  // namespace test
}  // namespace antichain
