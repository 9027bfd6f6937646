// A step runs on a device with memory of its own, on stand-ins (fake_gpu.h): the runner's device side and the
// very code of pipeline/cuda. It gives the CPU's bits, waits once a step, and what is not waited for shows.
// Nothing here runs on a device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "framework/bf16.h"
#include "framework/cuda/look.h"
#include "framework/error.h"
#include "layers/cpu/dnnl.h"
#include "tests/pipeline/fakes/forgetful_streams.h"
#include "tests/pipeline/fakes/on_fake_gpu.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/transport/nccl_among.h"

namespace antichain::test {
namespace {

const MakeTransport both_ways[] = {staged, over_nccl};

TrainingRun train_alone(const TrainingCase& c) {
  return train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
}
TrainingRun train_late(const TrainingCase& c, int ranks, unsigned seed, const MakeTransport& over = staged) {
  return train_on_threads(on_fake_gpu(c, seed, over), ranks, at_random(seed), by_policy(Policy::one_f_one_b));
}

class DeviceStepOf : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(EveryEdge, DeviceStepOf, ::testing::Values("every_edge"));
INSTANTIATE_TEST_SUITE_P(SharedWeights, DeviceStepOf, ::testing::Values("repeated"));
INSTANTIATE_TEST_SUITE_P(Large, DeviceStepOf, ::testing::Values("resnet20", "squeezenet"));

// Few micro-batches, many of them, and one.
TEST_P(DeviceStepOf, TrainsToTheBitsOfTheCpu) {
  for (const auto& [ranks, microbatches] : {std::pair(1, 4), {2, 1}, {2, 2}, {2, 7}, {3, 4}, {4, 4}}) {
    const TrainingCase c{
        .model = GetParam(), .microbatches = microbatches, .steps = 3, .epoch = true, .rate = 0.01f};
    const TrainingRun cpu = train_alone(c);
    for (const MakeTransport& over : both_ways)
      expect_same(train_late(c, ranks, unsigned(ranks), over), cpu, fmt::format("{} ranks", ranks));
  }
}

// A rank with several stages has their inputs, losses and recordings apart.
TEST(DeviceStep, TrainsSeveralStagesARankToTheBitsOfTheCpu) {
  const TrainingCase c{.steps = 3, .epoch = true};
  const TrainingRun cpu = train_alone(c);
  for (const MakeTransport& over : both_ways)
    for (const std::vector<int>& ranks : {std::vector<int>{0, 1, 0, 1}, {0, 1, 2, 2, 1, 0}})
      expect_same(
          train_on_threads(on_fake_gpu(c, unsigned(ranks.size()), over), *std::ranges::max_element(ranks) + 1,
                           placed(at_random(1), ranks), by_policy(Policy::gpipe)),
          cpu, fmt::format("{} stages", ranks.size()));
}

// At random cuts, which have messages that skip stages. Nothing is read early, or written in use.
TEST(DeviceStep, TrainsToTheBitsOfTheCpuUnderEverySchedule) {
  const TrainingCase c{.microbatches = 6, .steps = 2};
  const TrainingRun cpu = train_alone(c);
  for (const Policy& policy : policies()) {
    if (!policy.trains || policy.asynchronous()) continue;
    for (const MakeTransport& over : both_ways)
      for (const unsigned seed : {3, 4, 5})
        expect_same(
            train_on_threads(on_fake_gpu(c, seed, over), 3, for_policy(policy, seed), by_policy(policy)), cpu,
            std::string(policy.name));
  }
}

TEST(DeviceStep, TrainsToTheBitsOfTheCpuInBf16) {
  if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  const TrainingCase c{.steps = 3, .precision = Precision::bf16, .epoch = true};
  const TrainingRun cpu = train_alone(c);
  for (const int ranks : {1, 3})
    expect_same(train_late(c, ranks, unsigned(ranks)), cpu, fmt::format("{} ranks", ranks));
}

TEST(DeviceStep, WaitsForTheDeviceOnceAStep) {
  const FakeGpu& gpu = FakeGpu::the();
  std::vector<int> waits, copies;
  TrainingCase c{.steps = 4};
  c.on_step = [&](const StepReport&) {
    waits.push_back(fake_cuda::waits(gpu.stream()));
    copies.push_back(gpu.copies());
  };
  train_late(c, 1, 1);
  for (size_t step = 1; step < 4; ++step) {
    EXPECT_EQ(waits[step], waits[step - 1] + 1);
    EXPECT_EQ(copies[step], copies[step - 1]);
  }
}

// When the results of a step are known, all of the next one is started, unless the judge decides before it
// begins.
TEST(DeviceStep, StartsAStepBeforeItWaitsForTheOneInFront) {
  TrainingCase c{.steps = 6, .epoch = true};
  std::vector<int> started;
  c.on_step = [&](const StepReport&) { started.push_back(fake_cuda::graph_launches()); };
  const auto train = [&](OnNan on_nan) {
    c.on_nan = on_nan;
    started.clear();
    const TrainingRun run = train_late(c, 1, 1);
    return std::pair(run, started);
  };
  const auto [decided, one_by_one] = train(OnNan::skip);
  const auto [run, ahead] = train(OnNan::abort);
  expect_same(run, decided, "begun early");
  for (size_t step = 2; step + 1 < 6; ++step) EXPECT_EQ(ahead[step], one_by_one[step + 1]) << step;
  EXPECT_EQ(ahead[5], one_by_one[5]);
}

// A rank alone clips on the device and begins a step early all the same. Several ranks wait once more, for 8
// bytes a parameter, and once for the judge's vote.
TEST(DeviceStep, ClipsGradientsToTheBitsOfTheCpu) {
  const FakeGpu& gpu = FakeGpu::the();
  std::vector<int> waits, copies;
  TrainingCase c{.steps = 6, .clip_norm = 0.5, .rate = 0.01f};
  const TrainingRun cpu = train_alone(c);
  c.on_step = [&](const StepReport&) {
    waits.push_back(fake_cuda::waits(gpu.stream()));
    copies.push_back(gpu.copies());
  };
  expect_same(train_late(c, 1, 1), cpu, "1 rank");
  for (size_t step = 2; step + 1 < 6; ++step) {
    EXPECT_EQ(waits[step], waits[step - 1] + 1);
    EXPECT_EQ(copies[step], copies[step - 1]);
  }
  c.on_step = [](const StepReport&) {};
  expect_same(train_late(c, 2, 2), cpu, "2 ranks");
  c.clip_norm = 0;
  EXPECT_NE(train_late(c, 1, 1).losses, cpu.losses) << "nothing is clipped";
}

// The judge that decides has to know before the update.
TEST(DeviceStep, WaitsOnceMoreWhereNumbersDecide) {
  const FakeGpu& gpu = FakeGpu::the();
  std::vector<int> waits;
  TrainingCase c{.steps = 3, .on_nan = OnNan::skip};
  c.on_step = [&](const StepReport&) { waits.push_back(fake_cuda::waits(gpu.stream())); };
  train_late(c, 1, 1);
  EXPECT_EQ(waits[2], waits[1] + 2);
}

// The device does things in any order, so a forgotten wait may go well, but not always.
class DeviceStepImages : public ::testing::TestWithParam<bool> {};  // made by the device, or not

TEST_P(DeviceStepImages, NeedsEveryOneOfItsWaits) {
  const TrainingCase c{.microbatches = 6, .steps = 3, .device_augments = GetParam()};
  const TrainingRun cpu = train_alone(c);
  FakeGpu& gpu = FakeGpu::the();
  for (const Forgets forgets :
       {Forgets::nothing, Forgets::arrival, Forgets::free_buffer, Forgets::delivery}) {
    gpu.around_copies = [&](std::unique_ptr<CopyStream> copies) {
      return std::make_unique<ForgetfulCopies>(std::move(copies), forgets);
    };
    int wrong = 0;
    const unsigned seeds = forgets == Forgets::nothing ? 4 : 60;  // the first one that goes wrong is enough
    for (unsigned seed = 1; seed <= seeds && wrong == 0; ++seed) {
      const TrainingRun run = train_late(c, 1, seed);
      wrong += int(run.losses != cpu.losses || run.state != cpu.state);
    }
    EXPECT_EQ(wrong > 0, forgets != Forgets::nothing) << int(forgets);
  }
  gpu.around_copies = nullptr;
}
INSTANTIATE_TEST_SUITE_P(, DeviceStepImages, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "OfTheDevice" : "OfTheHost");
});

class DeviceNumbers : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("ANTICHAIN_FAULT"); }
  static TrainingCase spoilt(OnNan on_nan, const char* fault) {
    ::setenv("ANTICHAIN_FAULT", fault, 1);
    return {.on_nan = on_nan};
  }
  static std::string sentence(const char* fault, int ranks) {
    try {
      train_late(spoilt(OnNan::abort, fault), ranks, 3);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_a_number) << error.what();
      return error.what();
    }
    return "";
  }
};

constexpr const char* forward = "nan:rank=-1:step=2:microbatch=1:activation:narrow";
constexpr const char* backward = "nan:rank=-1:step=2:microbatch=2:gradient:conv";

// Micro-batch and step are exact; the node is the first one behind that is looked at.
TEST_F(DeviceNumbers, NamesMicroBatchAndStep) {
  for (const int ranks : {1, 3}) {
    EXPECT_NE(sentence(forward, ranks).find("step 3, micro-batch 1: "), std::string::npos)
        << sentence(forward, ranks);
    EXPECT_NE(sentence(forward, ranks).find(" of node norm "), std::string::npos) << sentence(forward, ranks);
    EXPECT_NE(sentence(backward, ranks).find("step 3, micro-batch 2: "), std::string::npos)
        << sentence(backward, ranks);
  }
}

TEST_F(DeviceNumbers, ASkippedStepLeavesNoTrace) {
  for (const char* fault : {forward, backward}) {
    const TrainingCase c = spoilt(OnNan::skip, fault);
    EXPECT_EQ(train_late(c, 2, 4).state, train_alone(c).state) << fault;
  }
}

TEST(Look, FindsTheLastNumberOfEachTensor) {
  const auto found = [](const std::vector<Tensor>& tensors) {
    std::vector<int32_t> marks(tensors.size());
    const std::vector<cuda::Piece> pieces = cuda::pieces_of(tensors);
    cuda::look_now(nullptr, pieces.data(), int64_t(pieces.size()), marks.data());
    return marks;
  };
  std::vector<Tensor> tensors;
  for (const int64_t count : {1, 255, 257, 16384, 16385, 100'003})
    for (const DType type : {DType::f32, DType::f64, DType::bf16})
      tensors.push_back(Tensor::host({{count}, type}));
  tensors.push_back(Tensor::host({{7}, DType::i32}));
  std::fill_n(tensors.back().data<int32_t>(), 7, -1);  // a NaN's bits
  tensors.push_back({});
  for (const Tensor& t : tensors)
    if (t && t.dtype() == DType::f32)
      std::fill_n(t.data<float>(), t.elements(), std::numeric_limits<float>::max());
  EXPECT_EQ(found(tensors), std::vector<int32_t>(tensors.size(), 0));
  for (size_t i = 0; i + 2 < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    const int64_t last = t.elements() - 1;
    const float bad =
        i % 2 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
    if (t.dtype() == DType::f32) t.data<float>()[last] = bad;
    if (t.dtype() == DType::f64) t.data<double>()[last] = double(bad);
    if (t.dtype() == DType::bf16) t.data<Bf16>()[last] = Bf16(bad);
    std::vector<int32_t> right(tensors.size(), 0);
    std::fill_n(right.begin(), i + 1, 1);
    EXPECT_EQ(found(tensors), right);
  }
}

// Wherever it stands, and wherever the numbers begin: packs of 16 bytes are only taken where they lie at
// multiples of that.
TEST(Look, FindsANumberAnywhere) {
  const auto found = [](const void* at, size_t count, size_t bytes) {
    const cuda::Piece piece{static_cast<const std::byte*>(at), uint32_t(count), uint16_t(bytes), 0};
    int32_t mark = 0;
    cuda::look_now(nullptr, &piece, 1, &mark);
    return mark == 1;
  };
  const auto check = [&]<class T>(T bad) {
    for (const size_t count : {1, 7, 8, 9, 15, 16, 17, 40})
      for (const size_t offset : {0, 1, 4}) {
        alignas(64) T numbers[64] = {};
        for (size_t i = 0; i < 64; ++i) {
          numbers[i] = bad;
          EXPECT_EQ(found(numbers + offset, count, sizeof(T)), i >= offset && i < offset + count) << i;
          numbers[i] = T(1.0f);
        }
      }
  };
  check(Bf16(std::numeric_limits<float>::infinity()));
  check(-std::numeric_limits<float>::infinity());
  check(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace
}  // namespace antichain::test
