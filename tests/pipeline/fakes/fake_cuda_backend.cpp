#include "tests/pipeline/fakes/fake_cuda_backend.h"

#include <cuda_runtime_api.h>

#include "framework/cuda/absorb.h"
#include "framework/cuda/backend.h"
#include "framework/cuda/check.h"
#include "framework/cuda/elementwise.h"
#include "framework/cuda/gradient_norm.h"
#include "framework/cuda/update.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_devices.h"
#include "tests/pipeline/fakes/fake_gpu.h"

namespace antichain {

// These are the passes of framework/cuda, as loops that go into a stream.
namespace cuda {

// These are framework/cuda/adamw.cu, ema.cu and sgd.cu, compiled for the host.
void adamw_now(Stream, const Optimiser&, const Rate&, const Part*, int64_t);
void ema_now(Stream, const Optimiser&, const Rate&, const Part*, int64_t);
void sgd_now(Stream, const Optimiser&, const Rate&, const Part*, int64_t);
void absorb_now(Stream, const RunningPart*, int64_t);  // framework/cuda/absorb.cu
// These are framework/cuda/gradient_norm.cu.
void sum_squares_now(Stream, const GradientList&);
void clip_now(Stream, const GradientList&, double most);
void scale_now(Stream, const GradientList&, float factor);

namespace {

template <class T>
void add_numbers(Stream stream, const T* x, T* y, int64_t count) {
  test::fake_cuda::launch(stream, [=] {
    for (int64_t i = 0; i < count; ++i) y[i] = T(float(y[i]) + float(x[i]));
  });
}
}  // namespace

void add(Stream s, const float* x, float* y, int64_t count) { add_numbers(s, x, y, count); }
void add(Stream s, const Bf16* x, Bf16* y, int64_t count) { add_numbers(s, x, y, count); }
void adamw(Stream stream, const Optimiser& optimiser, const Rate& rate, const Part* parts, int64_t count) {
  test::fake_cuda::launch(stream, [=, &optimiser] { adamw_now(nullptr, optimiser, rate, parts, count); });
}
void ema(Stream stream, const Optimiser& optimiser, const Rate& rate, const Part* parts, int64_t count) {
  test::fake_cuda::launch(stream, [=, &optimiser] { ema_now(nullptr, optimiser, rate, parts, count); });
}
void sgd(Stream stream, const Optimiser& optimiser, const Rate& rate, const Part* parts, int64_t count) {
  test::fake_cuda::launch(stream, [=, &optimiser] { sgd_now(nullptr, optimiser, rate, parts, count); });
}
void sum_squares(Stream stream, const GradientList& all) {
  test::fake_cuda::launch(stream, [=] { sum_squares_now(nullptr, all); });
}
void clip(Stream stream, const GradientList& all, double most) {
  test::fake_cuda::launch(stream, [=] { clip_now(nullptr, all, most); });
}
void scale(Stream stream, const GradientList& all, float factor) {
  test::fake_cuda::launch(stream, [=] { scale_now(nullptr, all, factor); });
}
void absorb(Stream stream, const RunningPart* parts, int64_t count) {
  test::fake_cuda::launch(stream, [=] { absorb_now(nullptr, parts, count); });
}

}  // namespace cuda

namespace test {

std::unique_ptr<Backend> make_fake_cuda_backend(const std::string& name) {
  cuda::BackendOptions options{.name = name, .libraries = "fake kernels"};
  for (const char* type : FakeGpu::operators) options.operators[type] = FakeGpu::the().entry(type);
  KernelEntry& conv = options.operators.at("conv2d");
  conv.lower = [lower = conv.lower](const Op& op, std::span<const Shape> x, std::span<const Layout> offered,
                                    Precision precision) {
    ANTICHAIN_CUDA(fake_cuda::enter_context());
    return lower(op, x, offered, precision);
  };
  return cuda::make_backend(std::move(options));
}

}  // namespace test
}  // namespace antichain
