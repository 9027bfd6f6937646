// These functions expect that two runs learned the same, bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/pipeline/run/training_run.h"

namespace antichain::test {

inline void expect_same(const TrainingRun& a, const TrainingRun& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;  // doubles, all bits
  EXPECT_EQ(a.state, b.state) << what;
  EXPECT_EQ(a.test_accuracy, b.test_accuracy) << what;
  EXPECT_EQ(a.epoch_losses, b.epoch_losses) << what;
  EXPECT_EQ(a.test_losses, b.test_losses) << what;
}

}  // namespace antichain::test
