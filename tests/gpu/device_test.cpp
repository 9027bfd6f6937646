// Tests what a CUDA device promises beside its operators: sums in bf16, the search for numbers that are none,
// and the same convolution by every engine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "framework/bf16.h"
#include "layers/cpu/backend.h"
#include "tests/layers/alternatives_check.h"
#include "tests/layers/device_memory.h"
#include "tests/layers/engines.h"

namespace antichain {
namespace {

using harness::random_tensor;

const Backend& cpu() {
  register_cpu_backend();
  return backend("cpu");
}

class Device : public ::testing::Test, public harness::DeviceMemory {
 protected:
  void SetUp() override {
    std::string why;
    const Backend* device = harness::find(harness::engines()[0], why);
    if (!device) GTEST_SKIP() << why;
    open(*device);
  }
};

Tensor as_bf16(const Tensor& t) {
  const Tensor rounded = Tensor::host({t.shape(), DType::bf16});
  for (int64_t i = 0; i < t.elements(); ++i) rounded.data<Bf16>()[i] = Bf16(t.data<float>()[i]);
  return rounded;
}

// Gradients of activations in bf16: each sum is rounded to nearest, ties to even.
TEST_F(Device, AddsBf16AsTheCpuDoes) {
  Context theirs(cpu());
  const Tensor x = as_bf16(random_tensor(100'003, 5)), y = as_bf16(random_tensor(100'003, 6));
  const Tensor sum = there(y);
  device_->add(*context_, there(x), sum);
  cpu().add(theirs, x, y);
  EXPECT_EQ(std::memcmp(here(sum).raw(), y.raw(), size_t(y.bytes())), 0);
}

// Float32 by Winograd's 4 x 4 tiles loses some digits; a bf16 number has 8 bits.
TEST_F(Device, AllEnginesOfAConvolutionComputeTheSame) {
  const ListAlternatives* list = alternatives_of("cuda");
  ASSERT_NE(list, nullptr) << "the module brings its list in";
  int engines = 0;
  for (const auto& [precision, share] :
       {std::pair(Precision::float32, 1e-4f), std::pair(Precision::bf16, 1e-2f)}) {
    engines += harness::check_alternatives(*list, *context_, {.out = 64, .kernel = 3, .pad = 1},
                                           {4, 32, 16, 16}, precision, share);
    engines += harness::check_alternatives(*list, *context_, {.out = 32, .kernel = 1, .stride = 2},
                                           {4, 64, 9, 9}, precision, share);
    engines += harness::check_alternatives(*list, *context_, {.out = 64, .kernel = 3, .pad = 1, .groups = 8},
                                           {4, 64, 8, 8}, precision, share);
  }
  EXPECT_GT(engines, 6 * 3 * 2) << "cuDNN has several, we have one";
}

TEST_F(Device, FindsWhatIsNotFinite) {
  const Tensor values = random_tensor(100'003, 4);
  EXPECT_EQ(device_->all_finite(*context_, there(values)), true);
  EXPECT_EQ(device_->all_finite(*context_, there(as_bf16(values))), true);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const Tensor spoilt = random_tensor(100'003, 4);
    spoilt.data<float>()[100'002] = bad;
    EXPECT_EQ(device_->all_finite(*context_, there(spoilt)), false);
    EXPECT_EQ(device_->all_finite(*context_, there(as_bf16(spoilt))), false);
  }
}

}  // namespace
}  // namespace antichain
