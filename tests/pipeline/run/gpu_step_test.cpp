// These steps on a GPU show what only a device can show of device_step.h and of the runner's device side.
// Without a GPU every test is skipped, by name: "needs a CUDA device". On stand-ins device_step_test.cpp
// tests the same everywhere, and tests/gpu/program.sh has whole trainings on a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <thread>

#include "data/raw_images.h"
#include "framework/bf16.h"
#include "framework/error.h"
#include "framework/random.h"
#include "models/model.h"
#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"
#include "pipeline/measure/profiler.h"
#include "pipeline/run/node_stamps.h"
#include "pipeline/run/runner.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/simulate/simulate.h"
#include "pipeline/transport/solo_transport.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/on_gpu.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

Plan some_plan(const Profile& profile, int stages) {
  std::mt19937 random(7);
  return test::random_plan(random, profile, stages);
}

class GpuStep : public OnGpu {
 protected:
  void TearDown() override { ::unsetenv("ANTICHAIN_FAULT"); }
};

// 20 copies within the device read and write 10 GiB: at 10 TB/s, faster than any there is, a millisecond.
TEST_F(GpuStep, StampsAreTheDevicesTimes) {
  Context context(*gpu);
  gpu->enter(context);
  const auto step = streams->step(context);
  const Tensor from = gpu->tensor({{256 << 20}, DType::u8}), to = gpu->tensor(from.spec());
  for (const bool exactly : {true, false, true}) {
    step->tie_clocks(exactly);
    const double begin_s = now_s();
    const Stamp begin = step->stamp();
    for (int i = 0; i < 20; ++i) step->copy(from, to);
    const Stamp end = step->stamp();
    const double launched_s = now_s();
    step->wait();
    const double end_s = now_s();
    EXPECT_GT(step->at_s(end) - step->at_s(begin), 1e-3);
    EXPECT_LT(launched_s, step->at_s(end)) << "the host did not wait";
    // 0.2 ms: a tie that is not exact takes the device for idle, and it may be some tens of microseconds
    // late.
    EXPECT_GT(step->at_s(begin), begin_s - 2e-4);
    EXPECT_LT(step->at_s(end), end_s + 2e-4);
  }
}

TEST_F(GpuStep, LooksFindTheLastNumberOfEachTensor) {
  Context context(*gpu);
  gpu->enter(context);
  const auto step = streams->step(context);
  std::vector<Tensor> tensors;
  for (const int64_t count : {1, 257, 16385, 1'000'003})
    for (const DType type : {DType::f32, DType::f64}) tensors.push_back(gpu->tensor({{count}, type}));
  const LookedAt looked = step->looked_at(tensors);
  const Tensor marks = gpu->tensor({{int64_t(tensors.size()) + 1}, DType::i32}),
               here = Tensor::host(marks.spec());
  for (size_t spoilt = 0; spoilt <= tensors.size(); ++spoilt) {
    if (spoilt > 0) {
      const Tensor& t = tensors[spoilt - 1];
      const Tensor host = Tensor::host(t.spec());
      if (t.dtype() == DType::f32)
        host.data<float>()[t.elements() - 1] = std::numeric_limits<float>::infinity();
      if (t.dtype() == DType::f64)
        host.data<double>()[t.elements() - 1] = std::numeric_limits<double>::quiet_NaN();
      gpu->copy(context, host, t);
    }
    step->clear(marks);
    step->look(looked, marks, 1);
    step->wait();
    gpu->copy(context, marks, here);
    EXPECT_EQ(here.data<int32_t>()[0], 0);
    for (size_t i = 0; i < tensors.size(); ++i)
      EXPECT_EQ(here.data<int32_t>()[i + 1], int32_t(i < spoilt)) << i << " of " << spoilt;
  }
}

// All draws of CIFAR's form are compared with the host's images.
TEST_F(GpuStep, MakesTheHostsImages) {
  Context context(*gpu);
  gpu->enter(context);
  const auto step = streams->step(context);
  const Shape shape{162, 3, 32, 32};
  const Normaliser normaliser;
  const Tensor raw = Tensor::host(raw_spec(shape)), right = Tensor::host({shape}),
               table = Tensor::host({{768}});
  std::memcpy(table.raw(), &normaliser.table(), sizeof normaliser.table());
  const Philox random(3);
  for (int64_t n = 0; n < 162; ++n) {
    const Augmentation draw{int(n / 18) - 4, int(n / 2 % 9) - 4, n % 2 == 1};
    const std::span<uint8_t> pixels(raw_pixels(raw, shape) + n * 3072, 3072);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = uint8_t(random.words(i, uint64_t(n))[0]);
    raw_records(raw)[n] = {draw, int(n != 100)};  // one pads the batch: zeros
    if (n != 100) normaliser(pixels, {3, 32, 32}, draw, {right.data<float>() + n * 3072, 3072});
  }
  const Tensor raw_there = gpu->tensor(raw.spec()), table_there = gpu->tensor(table.spec());
  gpu->copy(context, raw, raw_there);
  gpu->copy(context, table, table_there);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor images = gpu->tensor({shape, dtype}), here = Tensor::host(images.spec());
    step->make_images(raw_there, table_there, images);
    gpu->copy(context, images, here);
    for (int64_t i = 0; i < right.elements(); ++i) {
      const float wanted = right.data<float>()[i];
      if (dtype == DType::f32)
        ASSERT_EQ(here.data<float>()[i], wanted) << i;
      else
        ASSERT_EQ(here.data<Bf16>()[i].bits, Bf16(wanted).bits) << i;
    }
  }
}

TEST_F(GpuStep, TrainsToTheSameBitsWithImagesOfTheHost) {
  TrainingCase c{
      .model = "resnet20", .microbatch = 16, .microbatches = 5, .steps = 4, .epoch = true, .device = "cuda"};
  const TrainingRun there = train_on_threads(c, 1, some_plan, by_policy(Policy::one_f_one_b));
  c.device_augments = false;
  const TrainingRun here = train_on_threads(c, 1, some_plan, by_policy(Policy::one_f_one_b));
  EXPECT_EQ(there.losses, here.losses);
  EXPECT_EQ(there.state, here.state);
  EXPECT_EQ(there.test_accuracy, here.test_accuracy);
}

TEST_F(GpuStep, NamesMicroBatchAndStepOfABadNumber) {
  ::setenv("ANTICHAIN_FAULT", "nan:rank=-1:step=2:microbatch=1:activation:layer1.1.conv1", 1);
  const TrainingCase c{.model = "resnet20", .device = "cuda"};
  try {
    train_on_threads(c, 1, some_plan, by_policy(Policy::one_f_one_b));
    FAIL() << "the step was taken for a good one";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::not_a_number);
    EXPECT_NE(std::string(error.what()).find("step 3, micro-batch 1: "), std::string::npos) << error.what();
  }
}

class Grey : public BatchSource {
 public:
  void fill(std::string_view, int, const Tensor& out) override {
    std::fill_n(out.raw(), out.bytes(), std::byte(0));
    if (out.dtype() == DType::f32) std::fill_n(out.data<float>(), out.elements(), 0.5f);
  }
};

TEST_F(GpuStep, ATraceHasTheDevicesTimes) {
  Context context(*gpu);
  gpu->enter(context);
  const Graph graph = lower(make_model("resnet20", {.microbatch = 64}), *gpu);
  const Profile profile = priced_by_flops(unpriced(graph, gpu->description()));
  const Plan plan = some_plan(profile, 1);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 4);
  SoloTransport alone;
  RankModel model(graph, plan.stages[0].nodes, context, 0);
  StageRunner runner(model, profile, plan, schedule, Mode::train, alone);
  TimeSheet sheet;
  runner.set_time_sheet(&sheet);
  Grey source;
  for (int i = 0; i < 3; ++i) runner.run({.batch = 256}, source);
  sheet = {};
  sheet.enter(Spent::other);
  const double begin_s = now_s();
  const StepResult result = runner.run({.batch = 256, .traced = true}, source);
  const double wall_s = now_s() - begin_s;
  sheet.stop();
  double computing_s = 0, before_s = result.events[0].start_s;
  EXPECT_GT(before_s, -2e-4);  // the step's beginning, but for what tying the clocks is off by
  for (const Event& e : result.events) {
    EXPECT_LE(before_s, e.start_s + 1e-6);  // float32 milliseconds
    EXPECT_LE(e.start_s, e.end_s);
    before_s = e.end_s;
    if (e.action.verb != Verb::load) computing_s += e.end_s - e.start_s;
  }
  EXPECT_LE(before_s, wall_s + 2e-4);
  EXPECT_GT(computing_s, 0.5 * wall_s);  // the rest is tying clocks, samples and the reading at the end
  EXPECT_NEAR(sheet.total_s(), wall_s, 0.05 * wall_s);
}

// Kernels that take as long as they do, however long the host takes to start them: copies of 256 MiB within
// the device.
TEST_F(GpuStep, NodesHaveTheirKernelsTimesHoweverSlowTheHost) {
  Context context(*gpu);
  gpu->enter(context);
  const auto step = streams->step(context);
  const Tensor from = gpu->tensor({{256 << 20}, DType::u8}), to = gpu->tensor(from.spec());
  std::map<NodeId, double> seconds;
  const auto copies_s = [&](int count, double host_s) {
    seconds.clear();
    for (int i = 0; i < 2; ++i) {
      step->tie_clocks(false);
      NodeStamps stamps(*step, [&](NodeId id, Verb, int, double s) { seconds[id] = s; });
      for (NodeId id = 0; id < 3; ++id)
        stamps.around(id, Verb::forward, 0, [&] {
          for (int n = 0; n < count * id; ++n) {
            std::this_thread::sleep_for(std::chrono::duration<double>(host_s));
            step->copy(from, to);
          }
        });
      stamps.let_go();
      step->wait();
      stamps.finish();
    }
    return seconds[1];
  };
  const double fast_s = copies_s(1, 0);
  EXPECT_LT(seconds[0], 2e-6) << "stamps around nothing";
  EXPECT_NEAR(seconds[2], 2 * fast_s, 0.1 * fast_s);
  const double slow_s = copies_s(1, 2e-3);  // 6 ms in all: the device is held for 20
  EXPECT_NEAR(slow_s, fast_s, 0.1 * fast_s);
}

// The promise is 3 %; a step of this one has some dozen microseconds that are the host's.
TEST_F(GpuStep, TheProfilePredictsTheStepThatRuns) {
  Context context(*gpu);
  gpu->enter(context);
  const Graph graph = lower(make_model("resnet18", {.microbatch = 32}), *gpu);
  SoloTransport alone;
  const Profile profile = measure(graph, context, alone, {.microbatches = 8, .budget_s = 1});
  const Plan plan = some_plan(profile, 1);
  const Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 8);
  RankModel model(graph, plan.stages[0].nodes, context, 0);
  StageRunner runner(model, profile, plan, schedule, Mode::train, alone);
  runner.set_judge([](const NumberReport&) { return true; }, /*decides=*/false);
  Grey source;
  std::vector<double> seconds;
  for (int i = 0; i < 23; ++i) {
    const double begin_s = now_s();
    runner.run({.batch = 256}, source);
    if (i >= 3) seconds.push_back(now_s() - begin_s);
  }
  EXPECT_NEAR(one_device_step_s(profile, 8), median(seconds), 0.03 * median(seconds));
  for (const ProfileNode& node : profile.nodes) {
    EXPECT_LT(node.cost.forward_s, one_device_step_s(profile, 1)) << node.name;
    if (node.role == Role::compute) {
      EXPECT_GT(node.cost.forward_s + double(node.op == "flatten"), 0) << node.name;
    }
  }
}

}  // namespace
}  // namespace antichain::test
