// A device makes images of bytes, on stand-ins (fake_gpu.h). The training is the same as with images of the
// host, at a quarter of the bytes. Nothing here runs on a device.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <vector>

#include "data/raw_images.h"
#include "framework/error.h"
#include "models/model.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/solo_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/transport/copies_between.h"

namespace antichain::test {
namespace {

Plan some_plan(const Profile& profile, int stages) {
  std::mt19937 random(11);
  return test::random_plan(random, profile, stages);
}

TrainingRun on_fake_gpu(TrainingCase c, int ranks, bool device_augments, unsigned seed, Policy policy) {
  fake_cuda::reset(seed);
  c.device = FakeGpu::the().name();
  c.device_augments = device_augments;
  c.over = [](JobTransport& job, const Context& context) {
    return make_staged_transport(job, device_streams("fake_gpu")->copies(context));
  };
  return train_on_threads(c, ranks, some_plan, by_policy(policy));
}

// Two epochs, each with a last batch that is dropped, and two evaluations, each with one that is padded.
void expect_the_bits_of_the_cpu(const TrainingCase& c, const std::vector<int>& rank_counts) {
  const TrainingRun cpu = train_on_threads(c, 1, some_plan, by_policy(Policy::one_f_one_b));
  ASSERT_EQ(cpu.epoch_losses.size(), 2u);
  for (const int ranks : rank_counts)
    for (const bool device : {true, false})
      for (const Policy policy : {Policy::one_f_one_b, Policy::gpipe}) {
        const TrainingRun run = on_fake_gpu(c, ranks, device, unsigned(ranks), policy);
        const std::string what = std::to_string(ranks) + (device ? " ranks, device" : " ranks, host");
        EXPECT_EQ(run.losses, cpu.losses) << what;
        EXPECT_EQ(run.state, cpu.state) << what;
        EXPECT_EQ(run.epoch_losses, cpu.epoch_losses) << what;
        EXPECT_EQ(run.test_accuracy, cpu.test_accuracy) << what;
      }
}

TEST(DeviceAugmentation, TrainsToTheBitsOfTheCpu) {
  expect_the_bits_of_the_cpu({.model = "resnet20", .steps = 3, .epochs = 2}, {1, 2, 3});
}

TEST(DeviceAugmentation, TrainsToTheBitsOfTheCpuWithEveryAugmentation) {
  expect_the_bits_of_the_cpu(
      {.model = "resnet20",
       .steps = 3,
       .augment = {.crop = Crop::reflect, .trivial = true, .erase = 0.5, .mixup = 0.5, .cutmix = 1},
       .epochs = 2},
      {2});
}

// One micro-batch a step, whose buffer is the next step's as well; an odd number, so that a step ends where
// the next begins.
TEST(DeviceAugmentation, TrainsToTheBitsOfTheCpuWithAnyNumberOfMicroBatches) {
  for (const int microbatches : {1, 3}) {
    const TrainingCase c{.model = "resnet20", .microbatches = microbatches, .steps = 4};
    const TrainingRun cpu = train_on_threads(c, 1, some_plan, by_policy(Policy::one_f_one_b));
    for (unsigned seed = 1; seed <= 4; ++seed) {
      const TrainingRun run = on_fake_gpu(c, 1, true, seed, Policy::one_f_one_b);
      EXPECT_EQ(run.losses, cpu.losses) << microbatches;
      EXPECT_EQ(run.state, cpu.state) << microbatches;
    }
  }
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
    TrainingCase c{.model = "resnet20", .steps = 4};
    c.on_step = [&](const StepReport&) { waits[device].push_back(fake_cuda::waits(gpu.stream())); };
    on_fake_gpu(c, 1, device, 1, Policy::one_f_one_b);
    gpu.around_copies = nullptr;
    bytes[device] = sent;
    for (size_t step = 1; step < 4; ++step)
      EXPECT_EQ(waits[device][step], waits[device][step - 1] + 1) << device;
  }
  const int64_t samples = 8 * (4 + 2);                // four steps and the test set's two batches
  EXPECT_EQ(bytes[false], samples * (3072 * 4 + 4));  // float32 and a label
  EXPECT_EQ(bytes[true], samples * (3072 + int64_t(sizeof(DrawnImage)) + 4));  // bytes, a record, a label
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
  FakeGpu& gpu = FakeGpu::the();
  Context context(gpu);
  gpu.enter(context);
  const Graph graph = lower(make_model("resnet20", {.microbatch = 2}), gpu);
  const Profile profile = priced_by_flops(unpriced(graph, gpu.description()));
  const Plan plan = some_plan(profile, 1);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 2);
  SoloTransport alone;
  RankModel model(graph, plan.stages[0].nodes, context, 0);
  const auto runner = [&] {
    return std::make_unique<StageRunner>(model, profile, plan, schedule, Mode::train, alone);
  };
  Fickle source({2, 3, 32, 32}), other_size({4, 3, 32, 32});
  const auto steady = runner();
  steady->run({.batch = 4}, source);
  steady->run({.batch = 4}, source);
  source.bytes = false;
  EXPECT_THROW(steady->run({.batch = 4}, source), Error);
  EXPECT_THROW(runner()->run({.batch = 4}, other_size), Error);
}

}  // namespace
}  // namespace antichain::test
