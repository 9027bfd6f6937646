// Promise 1 holds for schedules: the same bits come out under every policy, on every number of ranks.
// Gradients of branches fold in one order wherever they are cut.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "layers/cpu/dnnl.h"
#include "pipeline/planning/order_search.h"
#include "pipeline/schedule/policy.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/schedule/fitting.h"

namespace antichain::test {
namespace {

constexpr int microbatches = 12;  // all policies take them on 1 to 4 ranks

class EverySchedule : public ::testing::TestWithParam<const char*> {};

TEST_P(EverySchedule, GivesTheBitsOfOneRank) {
  const TrainingCase c{
      .model = GetParam(), .microbatch = 1, .microbatches = microbatches, .steps = 2, .rate = 0.01f};
  const TrainingRun one = train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
  unsigned seed = 0;
  for (const Policy& policy : policies())
    for (int ranks = 1; policy.trains && ranks <= 4; ++ranks)
      expect_same(train_on_threads(c, ranks, for_policy(policy, ++seed), by_policy(policy)), one,
                  fmt::format("{} on {} ranks", policy.name, ranks));
  const auto planned = [](const Profile& profile, const Plan& plan, int M) {
    return plan_order(profile, plan, {}, M, default_in_flight(profile, plan, {}, M)).schedule;
  };
  for (int ranks = 2; ranks <= 4; ++ranks)
    expect_same(train_on_threads(c, ranks, at_random(++seed), planned), one,
                fmt::format("a planned order on {} ranks", ranks));
}

INSTANTIATE_TEST_SUITE_P(OfEveryEdge, EverySchedule, ::testing::Values("every_edge"));
INSTANTIATE_TEST_SUITE_P(Large, EverySchedule, ::testing::Values("resnet20", "squeezenet1_0"));

TEST(EverySchedule, GivesTheBitsOfOneRankInBf16) {
  if (!cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  TrainingCase c{.microbatches = microbatches, .steps = 3, .rate = 0.01f};
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
