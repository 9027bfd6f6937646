// Tests that the update of many parameters at once gives the CPU's bits, whatever their sizes, and rounds as
// a conversion does.
#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <string>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/bf16.h"
#include "framework/muon.h"
#include "framework/sgd.h"
#include "layers/cpu/backend.h"
#include "tests/layers/device_memory.h"
#include "tests/layers/engines.h"

namespace antichain {
namespace {

using harness::random_tensor;

// Less than a pack of four, uneven ones, more than a part, and none.
constexpr int64_t tall = 100 * 3 * 3 * 5, wide = 7 * 13 * 3 * 3;
constexpr int64_t sizes[] = {1, 3, 4, 64, 1001, 16384, 0, 40'007, tall, wide};

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
  // Every other parameter is a matrix, which may decay where a vector does not; the last are a convolution's
  // kernel, taller than wide, and a hidden layer's matrix, wider than tall.
  static Tensor parameter(size_t i, uint64_t key) {
    const Tensor flat = random_tensor(sizes[i], key);
    if (sizes[i] == tall) return Tensor({{100, 3, 3, 5}}, flat.storage());
    if (sizes[i] == wide) return Tensor({{7, 13 * 3 * 3}}, flat.storage());
    return i % 2 == 0 ? flat : Tensor({{sizes[i], 1}}, flat.storage());
  }
  // The test makes three steps, so that what is kept from step to step counts.
  void check(const std::shared_ptr<const Optimiser>& optimiser) const {
    register_cpu_backend();
    const Backend& cpu = backend("cpu");
    Context of_cpu(cpu);
    std::vector<Trained> ours, theirs;
    for (size_t i = 0; i < std::size(sizes); ++i) {
      const auto key = uint64_t(sizes[i]);
      theirs.push_back({parameter(i, key + 1), parameter(i, key + 2), {}, {}});
      Trained& t = theirs.back();
      const ParamSpec param{.shape = t.w.shape(), .hidden_matrix = sizes[i] == wide};
      for (const std::string& slot : optimiser->slots(param)) {
        t.slots.push_back(Tensor::host(t.w.spec()));
        EXPECT_NE(slot, "");
      }
      ours.push_back({there(t.w), there(t.dw), {}, {}});
      for (const Tensor& slot : t.slots) ours.back().slots.push_back(there(slot));
      if (sizes[i] % 2 == 0 && device_->name() != "cpu")
        ours.back().rounded = device_->tensor({t.w.shape(), DType::bf16});
    }
    const std::unique_ptr<Update> update = device_->make_update(optimiser, *context_, ours),
                                  of_theirs = cpu.make_update(optimiser, of_cpu, theirs);
    uint64_t step = 0;
    for (const float rate : {0.1f, 0.03f, 0.02f}) {
      update->run(*context_, {rate, step});
      of_theirs->run(of_cpu, {rate, step++});
    }
    for (size_t i = 0; i < ours.size(); ++i) {
      expect_same(ours[i].w, theirs[i].w, "weights");
      expect_same(ours[i].dw, theirs[i].dw, "gradients");
      for (size_t slot = 0; slot < ours[i].slots.size(); ++slot)
        expect_same(ours[i].slots[slot], theirs[i].slots[slot], "slot " + std::to_string(slot));
      if (!ours[i].rounded) continue;
      const Tensor rounded = here(ours[i].rounded);
      for (int64_t k = 0; k < rounded.elements(); ++k)
        ASSERT_EQ(float(rounded.data<Bf16>()[k]), float(Bf16(theirs[i].w.data<float>()[k]))) << k;
    }
  }
};

TEST_P(UpdateAtOnce, HasTheBitsOfTheCpu) {
  for (const DecayGroups groups : {DecayGroups::all, DecayGroups::weights}) {
    for (const float momentum : {0.0f, 0.9f})
      for (const bool nesterov : {false, true})
        check(std::make_shared<Sgd>(
            SgdOptions{.momentum = momentum, .nesterov = nesterov, .decay_groups = groups}));
    const auto adamw = std::make_shared<AdamW>(AdamWOptions{.weight_decay = 0.3, .decay_groups = groups});
    check(adamw);
    check(std::make_shared<Averaged>(adamw, 0.75));
    for (const bool nesterov : {false, true})
      check(std::make_shared<Muon>(MuonOptions{.nesterov = nesterov, .adamw = {.decay_groups = groups}}));
  }
}

// A vector goes where it would go without decay, and a matrix does not.
TEST_P(UpdateAtOnce, LetsDecayWhatItIsToldTo) {
  const auto trained = [&](const std::shared_ptr<const Optimiser>& optimiser, size_t i) {
    const Trained t{there(parameter(i, 1)), there(parameter(i, 2)), {}, {}};
    std::vector<Trained> all = {t};
    while (all[0].slots.size() < optimiser->slots({}).size())
      all[0].slots.push_back(device_->tensor(t.w.spec()));
    device_->make_update(optimiser, *context_, all)->run(*context_, 0.1f);
    const Tensor w = here(t.w);
    return std::vector<float>(w.data<float>(), w.data<float>() + w.elements());
  };
  const auto expect = [&](const auto& made) {
    EXPECT_EQ(trained(made(0.f, DecayGroups::all), 4), trained(made(0.5f, DecayGroups::weights), 4));
    EXPECT_NE(trained(made(0.f, DecayGroups::all), 4), trained(made(0.5f, DecayGroups::all), 4));
    EXPECT_EQ(trained(made(0.5f, DecayGroups::all), 3), trained(made(0.5f, DecayGroups::weights), 3));
    EXPECT_NE(trained(made(0.f, DecayGroups::all), 3), trained(made(0.5f, DecayGroups::weights), 3));
  };
  expect([](float decay, DecayGroups groups) {
    return std::make_shared<Sgd>(SgdOptions{.weight_decay = decay, .decay_groups = groups});
  });
  expect([](float decay, DecayGroups groups) {
    return std::make_shared<AdamW>(AdamWOptions{.weight_decay = decay, .decay_groups = groups});
  });
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
