// Promise 1 holds in bf16 for the CUDA engine's own kernels, as loops of the host.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace antichain::test
