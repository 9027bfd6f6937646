// Faults come when and to whom they are told, and never by mistake.
#include "pipeline/host/fault.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "tests/expect_error.h"

namespace antichain {
namespace {

class Fault : public ::testing::Test {
 protected:
  void SetUp() override { ::unsetenv("ANTICHAIN_FAULT"); }
  void TearDown() override { ::unsetenv("ANTICHAIN_FAULT"); }
  static void told(const char* fault) { ::setenv("ANTICHAIN_FAULT", fault, 1); }
};

TEST_F(Fault, NobodyToldNothingHappens) {
  fault_point(0, 0);
  told("");
  fault_point(0, 0);
}

TEST_F(Fault, StrikesOneRankAtOneStep) {
  told("throw:rank=1:step=3");
  fault_point(0, 3);
  fault_point(1, 2);
  fault_point(1, 4);
  expect_error([] { fault_point(1, 3); }, {"rank 1", "step 3"});
}

TEST_F(Fault, SlowsOneRankFromAStepOn) {
  told("slow:rank=1:step=3");
  fault_point(1, 3);
  EXPECT_EQ(delay_for(1, 2), 0);
  EXPECT_EQ(delay_for(0, 3), 0);
  EXPECT_GT(delay_for(1, 3), 0);
  EXPECT_GT(delay_for(1, 9), 0);
}

TEST_F(Fault, KillsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  told("exit:rank=0:step=0");
  EXPECT_EXIT(fault_point(0, 0), ::testing::KilledBySignal(SIGKILL), "");
}

TEST_F(Fault, WhatCantBeUnderstoodIsAnErrorOnEveryRank) {
  for (const char* text : {"explode:rank=1:step=3", "hang", "hang:rank=1", "hang:step=3:rank=1",
                           "hang:rank=1:step=3x", "hang:rank=one:step=3"}) {
    told(text);
    expect_error([] { fault_point(0, 0); }, {text, "hang|stop|exit|throw"});
  }
}

}  // namespace
}  // namespace antichain
