// A device makes images of bytes, on stand-ins (fake_gpu.h). The training is the same as with images of the
// host, at a quarter of the bytes. Nothing here runs on a device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "data/raw_images.h"
#include "framework/error.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/pipeline/fakes/on_fake_gpu.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/transport/copies_between.h"

namespace antichain::test {
namespace {

TrainingRun train_on_fake_gpu(TrainingCase c, int ranks, bool device_augments, unsigned seed, Policy policy) {
  c.device_augments = device_augments;
  return train_on_threads(on_fake_gpu(c, seed), ranks, at_random(11), by_policy(policy));
}

// Two epochs, each with a last batch that is dropped, and two evaluations, each with one that is padded.
void expect_the_bits_of_the_cpu(const TrainingCase& c, const std::vector<int>& rank_counts) {
  const TrainingRun cpu = train_on_threads(c, 1, at_random(11), by_policy(Policy::one_f_one_b));
  ASSERT_EQ(cpu.epoch_losses.size(), 2u);
  for (const int ranks : rank_counts)
    for (const bool device : {true, false})
      for (const Policy& policy : {Policy::one_f_one_b, Policy::gpipe})
        expect_same(train_on_fake_gpu(c, ranks, device, unsigned(ranks), policy), cpu,
                    fmt::format("{} ranks, {}", ranks, device ? "device" : "host"));
}

// One micro-batch a step, whose buffer is the next step's as well; an odd number, so that a step ends where
// the next begins; an even one.
TEST(DeviceAugmentation, TrainsToTheBitsOfTheCpu) {
  for (const int microbatches : {1, 3, 4})
    expect_the_bits_of_the_cpu({.microbatches = microbatches, .steps = 3, .epochs = 2}, {1, 2, 3});
}

TEST(DeviceAugmentation, TrainsToTheBitsOfTheCpuWithEveryAugmentation) {
  const AugmentOptions augment{
      .crop = Crop::reflect, .trivial = true, .erase = 0.5, .mixup = 0.5, .cutmix = 1};
  expect_the_bits_of_the_cpu({.steps = 3, .augment = augment, .epochs = 2}, {1, 2});
}

// These copies count what goes to the device.
class Counting : public CopiesBetween {
 public:
  Counting(std::unique_ptr<CopyStream> copies, std::atomic<int64_t>& bytes)
      : CopiesBetween(std::move(copies)), bytes_(bytes) {}
  Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) override {
    bytes_ += host.bytes();
    return copies_->to_device(host, to, after);
  }

 private:
  std::atomic<int64_t>& bytes_;
};

TEST(DeviceAugmentation, SendsAQuarterOfTheBytesAndWaitsNoMore) {
  FakeGpu& gpu = FakeGpu::the();
  int64_t bytes[2] = {};
  std::vector<int> waits[2];
  for (const bool device : {false, true}) {
    std::atomic<int64_t> sent = 0;
    gpu.around_copies = [&](std::unique_ptr<CopyStream> copies) {
      return std::make_unique<Counting>(std::move(copies), sent);
    };
    TrainingCase c{.steps = 4};
    c.on_step = [&](const StepReport&) { waits[device].push_back(fake_cuda::waits(gpu.stream())); };
    train_on_fake_gpu(c, 1, device, 1, Policy::one_f_one_b);
    gpu.around_copies = nullptr;
    bytes[device] = sent;
    for (size_t step = 1; step < 4; ++step)
      EXPECT_EQ(waits[device][step], waits[device][step - 1] + 1) << device;
  }
  const int64_t samples = 8 * (4 + 2), pixels = 3 * 8 * 8;  // four steps and the test set's two batches
  EXPECT_EQ(bytes[false], samples * (pixels * 4 + 4));      // float32 and a label
  EXPECT_EQ(bytes[true], samples * (pixels + int64_t(sizeof(DrawnImage)) + 4));  // bytes, a record, a label
}

// This source gives raw images of class 0 in every other step.
class Fickle : public BatchSource {
 public:
  explicit Fickle(const Shape& images) : raw_{images, {}} {}
  void fill(std::string_view, int, const Tensor& out) override {
    std::fill_n(out.raw(), out.bytes(), std::byte(0));
  }
  const RawImages* raw(std::string_view input) const override {
    return bytes && input == "images" ? &raw_ : nullptr;
  }
  bool bytes = true;

 private:
  const RawImages raw_;
};

TEST(DeviceAugmentation, RefusesASourceThatChangesItsForm) {
  DeviceRank device("every_edge", 2, 2);
  SoloTransport alone;
  Fickle source({2, 3, 8, 8}), other_size({4, 3, 8, 8});
  const auto steady = device.runner(alone);
  steady->run({.batch = 4}, source);
  steady->run({.batch = 4}, source);
  source.bytes = false;
  EXPECT_THROW(steady->run({.batch = 4}, source), Error);
  EXPECT_THROW(device.runner(alone)->run({.batch = 4}, other_size), Error);
}

}  // namespace
}  // namespace antichain::test
