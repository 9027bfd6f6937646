// Lists the engines that need no device: the CPU's, and the CUDA engine's own kernels run as loops on the
// host. cuDNN and cuBLAS are left out: convolutions take the direct path.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "tests/cpu_engine.h"
#include "tests/layers/cuda_on_host/backend.h"
#include "tests/layers/engines.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

// Our own loops compute in bf16 on every processor.
std::string lacks_bf16(const OpCase& c) {
  return by_onednn(c) && !cpu::has_bf16() ? "oneDNN multiplies bf16 numbers by AVX512_BF16" : "";
}

}  // namespace

std::vector<Engine> engines() {
  return {{.name = "cpu", .backend = "cpu", .layouts = {Layout::plain, Layout::nChw8c, Layout::nChw16c}},
          {.name = "cpu_bf16",
           .backend = "cpu",
           .layouts = {Layout::plain, Layout::nChw16c},
           .precision = Precision::bf16,
           .lacks = lacks_bf16},
          {.name = "cuda_on_host", .backend = "cuda_on_host", .layouts = {Layout::plain, Layout::nhwc}},
          {.name = "cuda_on_host_bf16",
           .backend = "cuda_on_host",
           .layouts = {Layout::plain, Layout::nhwc},
           .precision = Precision::bf16,
           .rounds_before_bias = true,
           .rounds_weight_gradients = true}};
}

const Backend* find(const Engine& engine, std::string&) {
  register_cpu_backend();
  register_cuda_on_host();
  return &backend(engine.backend);
}

namespace {

// This holds for our own loops. (oneDNN may share a sum among threads.)
TEST(Operators, GiveTheSameBitsOnAnyNumberOfThreads) {
  constexpr std::string_view types[] = {
      "activate",    "add",    "attention",  "batch_norm",      "class_token",
      "embedding",   "gather", "group_norm", "interpolate",     "layer_norm",
      "layer_scale", "mean",   "multiply",   "permute",         "relu",
      "rotary",      "slice",  "softmax",    "stochastic_depth"};
  for (const OpCase& c : cases()) {
    if (std::ranges::find(types, c.op->type()) == std::end(types)) continue;
    const Values values = draw(c);
    const Results one = run(cpu_engine(), c, values, {.offered = Layout::nChw8c});
    for (int threads : {2, 3, 7})
      EXPECT_EQ(run(cpu_engine(), c, values, {.offered = Layout::nChw8c, .threads = threads}), one)
          << c.name << " on " << threads;
  }
}

// The harness must have had something to check.
TEST(Operators, SomeAddToInputGradients) {
  for (const Engine& e : engines()) {
    std::string why;
    int adding = 0;
    const Backend* backend = find(e, why);
    if (!backend) continue;
    for (const OpCase& c : cases()) adding += carries_out(*backend, c) && adds_dx(*backend, c);
    EXPECT_GT(adding, 10) << e.name;
  }
}

}  // namespace
}  // namespace antichain::harness
