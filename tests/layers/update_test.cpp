// Tests that the update of many parameters at once gives the CPU's bits, whatever their sizes, and rounds as
// a conversion does.
#include <gtest/gtest.h>

#include <cstring>

#include "framework/bf16.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "tests/layers/device_memory.h"
#include "tests/layers/engines.h"

namespace antichain {
namespace {

using harness::random_tensor;

// Less than a pack of four, uneven ones, more than a part, and none.
constexpr int64_t sizes[] = {1, 3, 4, 64, 1001, 16384, 0, 40'007};

class UpdateAtOnce : public ::testing::TestWithParam<harness::Engine>, public harness::DeviceMemory {
 protected:
  void SetUp() override {
    std::string why;
    const Backend* device = harness::find(GetParam(), why);
    if (!device) GTEST_SKIP() << why;
    open(*device);
  }
  void expect_same(const Tensor& ours, const Tensor& theirs, const std::string& what) const {
    EXPECT_EQ(std::memcmp(here(ours).raw(), theirs.raw(), size_t(theirs.bytes())), 0)
        << what << " of " << theirs.elements();
  }
  // Two steps, so that momentum counts.
  void check(const SgdOptions& options) const {
    register_cpu_backend();
    const Backend& cpu = backend("cpu");
    Context of_cpu(cpu);
    const auto sgd = std::make_shared<Sgd>(options);
    std::vector<Trained> ours, theirs;
    for (const int64_t n : sizes) {
      const auto key = uint64_t(n);
      theirs.push_back({random_tensor(n, key + 1), random_tensor(n, key + 2), {}, {}});
      Trained& t = theirs.back();
      if (!sgd->slots({}).empty()) t.slots.push_back(random_tensor(n, key + 3));
      ours.push_back({there(t.w), there(t.dw), {}, {}});
      for (const Tensor& slot : t.slots) ours.back().slots.push_back(there(slot));
      if (n % 2 == 0 && device_->name() != "cpu") ours.back().rounded = device_->tensor({{n}, DType::bf16});
    }
    const std::unique_ptr<Update> update = device_->make_update(sgd, *context_, ours),
                                  of_theirs = cpu.make_update(sgd, of_cpu, theirs);
    for (const float rate : {0.1f, 0.03f}) {
      update->run(*context_, rate);
      of_theirs->run(of_cpu, rate);
    }
    for (size_t i = 0; i < ours.size(); ++i) {
      expect_same(ours[i].w, theirs[i].w, "weights");
      expect_same(ours[i].dw, theirs[i].dw, "gradients");
      if (!ours[i].slots.empty()) expect_same(ours[i].slots[0], theirs[i].slots[0], "momentum");
      if (!ours[i].rounded) continue;
      const Tensor rounded = here(ours[i].rounded);
      for (int64_t k = 0; k < rounded.elements(); ++k)
        ASSERT_EQ(float(rounded.data<Bf16>()[k]), float(Bf16(theirs[i].w.data<float>()[k]))) << k;
    }
  }
};

TEST_P(UpdateAtOnce, HasTheBitsOfTheCpu) {
  for (const float momentum : {0.0f, 0.9f})
    for (const bool nesterov : {false, true}) check({.momentum = momentum, .nesterov = nesterov});
}

// The rate is what stands in the device's memory when the update runs.
TEST_P(UpdateAtOnce, ReadsARateWhereItStands) {
  if (device_->name() == "cpu") return;  // it is told the rate in each call
  const Tensor w = random_tensor(1001, 1), dw = random_tensor(1001, 2), same = there(w), other = there(w);
  const Tensor numbers = Tensor::host({{int64_t(sizeof(StepNumbers))}, DType::u8});
  const StepNumbers said{.step = 3, .rate = 0.25f};
  std::memcpy(numbers.raw(), &said, sizeof said);
  const Tensor live = there(numbers);
  const auto sgd = std::make_shared<Sgd>(SgdOptions{.momentum = 0});
  device_->make_update(sgd, *context_, {{same, there(dw), {}, {}}})->run(*context_, 0.25f);
  device_->make_update(sgd, *context_, {{other, there(dw), {}, {}}})
      ->run(*context_, Rate(reinterpret_cast<const StepNumbers*>(live.raw())));
  expect_same(other, here(same), "weights");
}

INSTANTIATE_TEST_SUITE_P(Engines, UpdateAtOnce, ::testing::ValuesIn(harness::engines()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace antichain
