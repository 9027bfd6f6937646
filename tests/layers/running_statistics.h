// Prepares what a step absorbs into the running statistics of a batch norm, with the same numbers on every
// engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/backend.h"
#include "framework/context.h"
#include "framework/random.h"
#include "layers/batch_norm.h"

namespace antichain::harness {

struct RunningStatistics {
  std::unique_ptr<Kernel> kernel;
  std::vector<std::vector<Tensor>> statistics;  // of each micro-batch
  std::vector<Tensor> buffers;                  // mean, variance, and the count of micro-batches, which is 5
};

inline Tensor random_floats(int64_t count, uint64_t key) {
  const Tensor t = Tensor::host({{count}});
  for (int64_t i = 0; i < count; ++i) t.data<float>()[i] = Philox::uniform(Philox(key).words(uint64_t(i))[0]);
  return t;
}

inline RunningStatistics running_statistics(Context& context, int64_t channels, int microbatches) {
  const Backend& engine = context.backend();
  const BatchNorm op({});
  const Shape shape{4, channels, 3, 3};
  const Layout nhwc = Layout::nhwc;
  const KernelEntry& entry = engine.entry("batch_norm");
  const Lowering lowering = entry.lower(op, {&shape, 1}, {&nhwc, 1}, Precision::float32);
  const TensorSpec x{shape, DType::f32, lowering.x[0]};
  RunningStatistics all{.kernel = entry.make(op, {&x, 1}, lowering)};
  const auto there = [&](const Tensor& host) {
    const Tensor tensor = engine.tensor(host.spec());
    engine.copy(context, host, tensor);
    return tensor;
  };
  for (uint64_t m = 0; m < uint64_t(microbatches); ++m)
    all.statistics.push_back(
        {there(random_floats(channels, 2 * m)), there(random_floats(channels, 2 * m + 1))});
  const Tensor count = Tensor::host({{1}, DType::i32});
  count.data<int32_t>()[0] = 5;
  all.buffers = {there(random_floats(channels, 1001)), there(random_floats(channels, 1002)), there(count)};
  return all;
}

// Returns the buffers in the host's memory.
inline std::vector<Tensor> buffers_here(const Context& context, const RunningStatistics& all) {
  std::vector<Tensor> here;
  for (const Tensor& buffer : all.buffers) {
    here.push_back(Tensor::host(buffer.spec()));
    context.backend().copy(context, buffer, here.back());
  }
  return here;
}

}  // namespace antichain::harness
