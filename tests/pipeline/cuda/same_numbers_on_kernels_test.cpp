// Promise 1 holds in bf16 for the CUDA engine's own kernels, as loops of the host.
#include <gtest/gtest.h>

#include <cstdlib>

#include "pipeline/schedule/policy.h"
#include "tests/layers/cuda_on_host/backend.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

// Whoever takes a gradient's terms in another stage rounds them alike.
TEST(SameNumbersInBf16OnCudaKernels, WhateverTheCut) {
  register_cuda_on_host();
  TrainingCase c{.microbatch = 2, .microbatches = 2, .steps = 2};
  c.precision = Precision::bf16;
  c.device = "cuda_on_host";
  const TrainingRun one = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  ASSERT_NE(one.losses.at(0), one.losses.at(1));
  expect_same(one, train_on_threads(c, 4, at_random(5), by_policy(Policy::gpipe)), "random cuts");
}

// A gradient's terms may be added by a pass or by the kernel that reads them, and passes may have code for
// each case. Loops of the host know nothing of the other ways: the emulated device folds sums in their last
// block (s2), and steps on stand-ins absorb statistics in one launch (s5).
TEST(SameNumbersInBf16OnCudaKernels, WhateverTheFastWays) {
  register_cuda_on_host();
  TrainingCase c{.microbatch = 2, .microbatches = 2, .steps = 2};
  c.precision = Precision::bf16;
  c.device = "cuda_on_host";
  const MakeSchedule order = by_policy(Policy::one_f_one_b);
  ::setenv("ANTICHAIN_CUDA_FAST", "plain", 1);
  const TrainingRun plain = train_on_threads(c, 1, by_antichains, order);
  ::setenv("ANTICHAIN_CUDA_FAST", "s3,s4", 1);
  expect_same(plain, train_on_threads(c, 1, by_antichains, order), "one stage");
  expect_same(plain, train_on_threads(c, 4, at_random(5), order), "random cuts");
  ::unsetenv("ANTICHAIN_CUDA_FAST");
}

}  // namespace
}  // namespace antichain::test
