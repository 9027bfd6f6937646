// Promise 1 holds for schedules: the same bits come out under every policy, on every number of ranks. The
// first model is a chain of blocks. The others have branches, whose gradients fold in one order wherever they
// are cut. Unless all large tests are asked for, they take the numbers of ranks in turns, and the last model
// is left out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "layers/cpu/dnnl.h"
#include "pipeline/planning/order_search.h"
#include "pipeline/schedule/policy.h"
#include "tests/large_tests.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

constexpr int microbatches = 12;  // all policies take them on 1 to 4 ranks
constexpr const char* models[] = {"resnet20", "squeezenet1_0", "mobilenet_v2", "efficientnet_b0"};

class EverySchedule : public ::testing::TestWithParam<const char*> {};

TEST_P(EverySchedule, GivesTheBitsOfOneRank) {
  const std::string_view model = GetParam();
  if (model == "efficientnet_b0" && !large_tests())
    GTEST_SKIP() << "has MobileNet-v2's blocks with branches as SqueezeNet's: set ANTICHAIN_LARGE_TESTS=1";
  const bool small = model == "resnet20" || model == "squeezenet1_0";
  const TrainingCase c{.model = GetParam(),
                       .microbatch = 1,
                       .microbatches = microbatches,
                       .steps = small ? 2 : 1,
                       .rate = 0.01f};
  const TrainingRun one = train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
  const bool every_rank = model == "resnet20" || large_tests();
  unsigned seed = 0;
  auto turn = std::ranges::find(models, model) - models;  // under one policy, each takes another number
  for (const Policy& policy : policies()) {
    if (!policy.trains) continue;
    ++turn;
    for (int ranks = 1; ranks <= 4; ++ranks)
      if (every_rank || ranks == 2 + turn % 3)
        expect_same(train_on_threads(c, ranks, for_policy(policy, ++seed), by_policy(policy)), one,
                    fmt::format("{} on {} ranks", policy.name, ranks));
  }
  const auto planned = [](const Profile& profile, const Plan& plan, int M) {
    return plan_order(profile, plan, {}, M, default_in_flight(profile, plan, {}, M)).schedule;
  };
  for (int ranks = 2; ranks <= 4; ++ranks)
    expect_same(train_on_threads(c, ranks, at_random(++seed), planned), one,
                fmt::format("a planned order on {} ranks", ranks));
}

INSTANTIATE_TEST_SUITE_P(Models, EverySchedule, ::testing::ValuesIn(models));

TEST(EverySchedule, GivesTheBitsOfOneRankInBf16) {
  if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  TrainingCase c{.model = "resnet20", .microbatches = microbatches, .steps = 3, .rate = 0.01f};
  c.precision = Precision::bf16;
  const TrainingRun one = train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
  unsigned seed = 0;
  for (const Policy& policy : policies())
    if (policy.trains)
      expect_same(train_on_threads(c, 3, for_policy(policy, ++seed), by_policy(policy)), one,
                  std::string(policy.name));
}

}  // namespace
}  // namespace antichain::test
