// A step runs on a device with memory of its own, on stand-ins (fake_gpu.h): the runner's device side and the
// very code of pipeline/cuda. It gives the CPU's bits, waits once a step, and what is not waited for shows.
// Nothing here runs on a device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "framework/bf16.h"
#include "framework/cuda/look.h"
#include "framework/error.h"
#include "layers/cpu/backend.h"
#include "layers/cpu/dnnl.h"
#include "models/model.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_gpu.h"
#include "tests/pipeline/fakes/forgetful_streams.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/transport/nccl_among.h"

namespace antichain::test {
namespace {

using MakeTransport = std::function<std::unique_ptr<Transport>(JobTransport& job, const Context&)>;
std::unique_ptr<Transport> staged(JobTransport& job, const Context& context) {
  return make_staged_transport(job, cuda::make_copy_stream(context));
}

TrainingRun on_fake_gpu(TrainingCase c, int ranks, Policy policy, unsigned seed,
                        const MakeTransport& over = staged) {
  fake_cuda::reset(seed);
  c.device = FakeGpu::the().name();
  c.over = over;
  return train_on_threads(c, ranks, at_random(seed), by_policy(policy));
}

TEST(DeviceStep, TrainsToTheBitsOfTheCpu) {
  const TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  for (const int ranks : {1, 2, 3})
    for (const Policy policy : {Policy::one_f_one_b, Policy::gpipe})
      expect_same(on_fake_gpu(c, ranks, policy, unsigned(ranks)), cpu,
                  std::to_string(ranks) + " ranks, " + std::string(policy.name));
}

TEST(DeviceStep, TrainsToTheBitsOfTheCpuOverNccl) {
  const TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  for (const int ranks : {2, 4})
    expect_same(on_fake_gpu(c, ranks, Policy::one_f_one_b, unsigned(ranks), over_nccl), cpu,
                std::to_string(ranks) + " ranks");
}

TEST(DeviceStep, TrainsReplicasToTheBitsOfTheCpuOverNccl) {
  TrainingCase c{.model = "resnet20", .microbatches = 5, .steps = 3};
  const MakePlan plan = [](const Profile& profile, int) {
    std::mt19937 random(3);
    return test::replicated(test::random_plan(random, profile, 2), {3, 2});
  };
  const TrainingRun cpu = train_on_threads(c, 5, plan, by_policy(Policy::one_f_one_b));
  fake_cuda::reset(3);
  c.device = FakeGpu::the().name();
  c.over = over_nccl;
  expect_same(train_on_threads(c, 5, plan, by_policy(Policy::one_f_one_b)), cpu, "3 and 2 replicas");
}

// A rank with several stages has their inputs, losses and recordings apart.
TEST(DeviceStep, TrainsSeveralStagesARankToTheBitsOfTheCpu) {
  const TrainingCase cpu_case{.model = "resnet20", .steps = 3, .epoch = true};
  const TrainingRun cpu = train_on_threads(cpu_case, 1, at_random(1), by_policy(Policy::one_f_one_b));
  for (const MakeTransport& over : {MakeTransport(staged), MakeTransport(over_nccl)})
    for (const std::vector<int>& ranks : {std::vector<int>{0, 1, 0, 1}, {0, 1, 2, 2, 1, 0}}) {
      fake_cuda::reset(unsigned(ranks.size()));
      TrainingCase c = cpu_case;
      c.device = FakeGpu::the().name();
      c.over = over;
      const TrainingRun run = train_on_threads(c, *std::ranges::max_element(ranks) + 1,
                                               placed(at_random(1), ranks), by_policy(Policy::gpipe));
      expect_same(run, cpu, fmt::format("{} stages", ranks.size()));
    }
}

TEST(DeviceStep, TrainsToTheBitsOfTheCpuUnderEverySchedule) {
  const TrainingCase cpu_case{.model = "resnet20", .microbatches = 6, .steps = 2};
  const TrainingRun cpu = train_on_threads(cpu_case, 1, at_random(1), by_policy(Policy::one_f_one_b));
  for (const Policy& policy : policies()) {
    if (!policy.trains) continue;
    for (const MakeTransport& over : {MakeTransport(staged), MakeTransport(over_nccl)}) {
      fake_cuda::reset(3);
      TrainingCase c = cpu_case;
      c.device = FakeGpu::the().name();
      c.over = over;
      expect_same(train_on_threads(c, 3, for_policy(policy, 3), by_policy(policy)), cpu,
                  std::string(policy.name));
    }
  }
}

// A mean of many images, dropout and two losses besides what ResNet has: few micro-batches, many of them,
// one.
TEST(DeviceStep, TrainsToTheBitsOfTheCpuWithAnyNumberOfMicroBatches) {
  for (const int microbatches : {1, 2, 7}) {
    const TrainingCase c{.model = "squeezenet", .microbatches = microbatches, .steps = 2};
    const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
    expect_same(on_fake_gpu(c, 2, Policy::one_f_one_b, 5), cpu, std::to_string(microbatches));
  }
}

TEST(DeviceStep, TrainsToTheBitsOfTheCpuInBf16) {
  if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  TrainingCase c{.model = "resnet20", .steps = 3, .epoch = true};
  c.precision = Precision::bf16;
  const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  for (const int ranks : {1, 3})
    expect_same(on_fake_gpu(c, ranks, Policy::one_f_one_b, unsigned(ranks)), cpu,
                std::to_string(ranks) + " ranks");
}

TEST(DeviceStep, WaitsForTheDeviceOnceAStep) {
  const FakeGpu& gpu = FakeGpu::the();
  std::vector<int> waits, copies;
  TrainingCase c{.model = "resnet20", .steps = 4};
  c.on_step = [&](const StepReport&) {
    waits.push_back(fake_cuda::waits(gpu.stream()));
    copies.push_back(gpu.copies());
  };
  on_fake_gpu(c, 1, Policy::one_f_one_b, 1);
  for (size_t step = 1; step < 4; ++step) {
    EXPECT_EQ(waits[step], waits[step - 1] + 1);
    EXPECT_EQ(copies[step], copies[step - 1]);
  }
}

// The running statistics of all batch norms of a stage have the CPU's bits by one launch or by one each (s5).
TEST(DeviceStep, AbsorbsAllStatisticsInOneLaunch) {
  TrainingCase c{.model = "resnet20", .steps = 1};
  const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  const auto launches = [&](const char* ways) {
    ::setenv("ANTICHAIN_CUDA_FAST", ways, 1);
    const int before = fake_cuda::launched();
    expect_same(on_fake_gpu(c, 1, Policy::one_f_one_b, 1), cpu, ways);
    ::unsetenv("ANTICHAIN_CUDA_FAST");
    return fake_cuda::launched() - before;
  };
  const Graph graph = make_model(c.model, {.microbatch = c.microbatch});
  const auto norms =
      std::ranges::count_if(graph, [](const Node& node) { return node.op->type() == "batch_norm"; });
  EXPECT_EQ(launches("plain") - launches("s5"), norms - 1);
}

// When the results of a step are known, all of the next one is started, unless the way is off.
TEST(DeviceStep, StartsAStepBeforeItWaitsForTheOneInFront) {
  TrainingCase c{.model = "resnet20", .steps = 6, .epoch = true};
  std::vector<int> started;
  c.on_step = [&](const StepReport&) { started.push_back(fake_cuda::graph_launches()); };
  const auto train = [&](const char* ways) {
    ::setenv("ANTICHAIN_CUDA_FAST", ways, 1);
    started.clear();
    const TrainingRun run = on_fake_gpu(c, 1, Policy::one_f_one_b, 1);
    ::unsetenv("ANTICHAIN_CUDA_FAST");
    return std::pair(run, started);
  };
  const auto [plain, one_by_one] = train("plain");
  const auto [fast, ahead] = train("s6");
  expect_same(fast, plain, "s6");
  for (size_t step = 2; step + 1 < 6; ++step) EXPECT_EQ(ahead[step], one_by_one[step + 1]) << step;
  EXPECT_EQ(ahead[5], one_by_one[5]);
  c.on_nan = OnNan::skip;
  EXPECT_EQ(train("s6").second, one_by_one) << "the judge decides before the next step begins";
}

// The judge that decides has to know before the update.
TEST(DeviceStep, WaitsOnceMoreWhereNumbersDecide) {
  const FakeGpu& gpu = FakeGpu::the();
  std::vector<int> waits;
  TrainingCase c{.model = "resnet20", .steps = 3};
  c.on_nan = OnNan::skip;
  c.on_step = [&](const StepReport&) { waits.push_back(fake_cuda::waits(gpu.stream())); };
  on_fake_gpu(c, 1, Policy::one_f_one_b, 1);
  EXPECT_EQ(waits[2], waits[1] + 2);
}

// The device does things in any order, so a forgotten wait may go well, but not always.
class DeviceStepImages : public ::testing::TestWithParam<bool> {};  // made by the device, or not

TEST_P(DeviceStepImages, NeedsEveryOneOfItsWaits) {
  TrainingCase c{.model = "resnet20", .microbatches = 6, .steps = 3};
  c.device_augments = GetParam();
  const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
  FakeGpu& gpu = FakeGpu::the();
  for (const Forgets forgets :
       {Forgets::nothing, Forgets::arrival, Forgets::free_buffer, Forgets::delivery}) {
    gpu.around_copies = [&](std::unique_ptr<CopyStream> copies) {
      return std::make_unique<ForgetfulCopies>(std::move(copies), forgets);
    };
    int wrong = 0;
    const unsigned seeds = forgets == Forgets::nothing ? 4 : 60;  // the first one that goes wrong is enough
    for (unsigned seed = 1; seed <= seeds && wrong == 0; ++seed) {
      const TrainingRun run = on_fake_gpu(c, 1, Policy::one_f_one_b, seed);
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
    TrainingCase c{.model = "resnet20"};
    c.on_nan = on_nan;
    return c;
  }
  static std::string sentence(const char* fault, int ranks) {
    try {
      on_fake_gpu(spoilt(OnNan::abort, fault), ranks, Policy::one_f_one_b, 3);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_a_number) << error.what();
      return error.what();
    }
    return "";
  }
};

constexpr const char* forward = "nan:rank=-1:step=2:microbatch=1:activation:layer1.1.conv1";
constexpr const char* backward = "nan:rank=-1:step=2:microbatch=2:gradient:layer2.1.conv2";

// Micro-batch and step are exact; the node is the first one behind that is looked at.
TEST_F(DeviceNumbers, NamesMicroBatchAndStep) {
  for (const int ranks : {1, 3}) {
    EXPECT_NE(sentence(forward, ranks).find("step 3, micro-batch 1: "), std::string::npos)
        << sentence(forward, ranks);
    EXPECT_NE(sentence(forward, ranks).find("layer1.1."), std::string::npos) << sentence(forward, ranks);
    EXPECT_NE(sentence(backward, ranks).find("step 3, micro-batch 2: "), std::string::npos)
        << sentence(backward, ranks);
  }
}

TEST_F(DeviceNumbers, ASkippedStepLeavesNoTrace) {
  for (const char* fault : {forward, backward}) {
    const TrainingCase c = spoilt(OnNan::skip, fault);
    const TrainingRun cpu = train_on_threads(c, 1, at_random(1), by_policy(Policy::one_f_one_b));
    EXPECT_EQ(on_fake_gpu(c, 2, Policy::one_f_one_b, 4).state, cpu.state) << fault;
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
