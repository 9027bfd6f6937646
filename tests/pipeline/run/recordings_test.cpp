// Work is recorded on stand-ins (fake_gpu.h): an action's kernels are asked twice and then started as a
// whole, with the same bits as ever, although the learning rate and the dropout masks change. Nothing here
// runs on a device.
#include "pipeline/cuda/recordings.h"

#include <gtest/gtest.h>

#include <set>

#include "framework/error.h"
#include "tests/pipeline/fakes/on_fake_gpu.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/variable.h"

namespace antichain::test {
namespace {

TrainingRun train_recorded(const TrainingCase& c, int ranks, bool on_device) {
  return train_on_threads(on_device ? on_fake_gpu(c) : c, ranks, at_random(3),
                          by_policy(Policy::one_f_one_b));
}

// Dropout, a rate that falls with every step, two epochs of both modes.
TEST(Recorded, StepsHaveTheBitsOfTheCpu) {
  const TrainingCase changing{.microbatches = 3, .steps = 4, .rate = 0.01f, .decay = 0.7f, .epochs = 2};
  const TrainingRun cpu = train_recorded(changing, 1, false);
  for (const int ranks : {1, 2}) {
    ::testing::internal::CaptureStderr();
    expect_same(train_recorded(changing, ranks, true), cpu, std::to_string(ranks) + " ranks");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_GT(fake_cuda::graph_launches(), 0);
  }
  const Variable unrecorded("ANTICHAIN_CUDA_GRAPHS", "0");
  expect_same(train_recorded(changing, 1, true), cpu, "not recorded");
  EXPECT_EQ(fake_cuda::graph_launches(), 0);
}

// A forward and a backward per micro-batch and the update; besides them the images of each, the step's
// numbers and the look at gradients.
TEST(Recorded, StepsLaunchOneGraphPerAction) {
  std::vector<int> kernels, graphs;
  TrainingCase c{.microbatches = 4, .steps = 5, .on_nan = OnNan::skip};  // no step begins early
  c.on_step = [&](const StepReport&) {
    kernels.push_back(fake_cuda::launched());
    graphs.push_back(fake_cuda::graph_launches());
  };
  train_recorded(c, 1, true);
  EXPECT_EQ(graphs, (std::vector<int>{0, 9, 18, 27, 36}));
  for (size_t step = 2; step < 5; ++step) EXPECT_EQ(kernels[step] - kernels[step - 1], 4 + 2);
}

// Trains with five actions a step. `spoilt` recordings fail from the second step on, the first in which any
// are made.
TrainingRun train_spoilt(const TrainingCase& c, const std::set<int>& spoilt) {
  TrainingCase spoiling = c;
  spoiling.on_nan = OnNan::skip;  // no step begins early
  spoiling.on_step = [&](const StepReport& report) {
    if (report.step == 0) fake_cuda::spoil_recordings(spoilt);
  };
  return train_recorded(spoiling, 1, true);
}
const TrainingCase five_actions{.microbatches = 2, .steps = 4, .decay = 0.7f};
constexpr int of_evaluation = 2;  // which records its own

TEST(Recorded, StepsAreRecordedTheNextTimeWhereARecordingFails) {
  const TrainingRun cpu = train_recorded(five_actions, 1, false);
  for (const int spoilt : {1, 4, 5}) {
    ::testing::internal::CaptureStderr();
    expect_same(train_spoilt(five_actions, {spoilt}), cpu, std::to_string(spoilt));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(fake_cuda::graph_launches(), 4 + 5 + 5 + of_evaluation);
  }
}

// Whichever it is: what can't be recorded the next time either is launched kernel by kernel, and said once.
TEST(Recorded, StepsGoOnWhereARecordingFailsTwice) {
  const TrainingRun cpu = train_recorded(five_actions, 1, false);
  for (const int spoilt : {1, 4, 5}) {
    ::testing::internal::CaptureStderr();
    expect_same(train_spoilt(five_actions, {spoilt, 6}), cpu, std::to_string(spoilt));
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("antichain: work on the device can't be recorded"), 0u) << said;
    EXPECT_EQ(said.find("recorded", 60), std::string::npos) << said;
    EXPECT_EQ(fake_cuda::graph_launches(), 4 * 3 + of_evaluation);
  }
}

class Recording : public ::testing::Test {
 protected:
  Recording() : stream_(fake_cuda::make_stream()), recordings_(stream_) { fake_cuda::reset(1); }

  CUstream_st* const stream_;
  cuda::Recordings recordings_;
  int asked_ = 0, sum_ = 0;
};

TEST_F(Recording, IsLeftOutWhereThereAreTooManyNodesWhichIsSaidOnce) {
  cuda::Recordings few(stream_, 3);
  int sum = 0;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i)
    for (const int key : {1, 2, 3})
      few.repeat(key, [&] {
        for (int j = 0; j < 2; ++j) fake_cuda::launch(stream_, [&] { ++sum; });
      });
  const std::string said = ::testing::internal::GetCapturedStderr();
  fake_cuda::drain(stream_);
  EXPECT_EQ(sum, 18);
  EXPECT_EQ(fake_cuda::graph_launches(), 2) << "of the first key's work";
  EXPECT_EQ(said.find("antichain: a step has more than the 3 pieces of work that are recorded"), 0u) << said;
  EXPECT_EQ(said.find("recorded", 65), std::string::npos) << said;
}

// The stream is whole again afterwards, and after a second time nothing is recorded any more.
TEST_F(Recording, EndsWhereTheWorkThrows) {
  const auto work = [&] {
    fake_cuda::launch(stream_, [this] { ++sum_; });
    if (++asked_ == 2 || asked_ == 4) throw Error("a kernel failed", "try another");
  };
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) recordings_.repeat(1, work);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("a kernel failed"), std::string::npos);
  fake_cuda::drain(stream_);
  EXPECT_EQ(sum_, 3);
  EXPECT_EQ(fake_cuda::graph_launches(), 0);
}

// Work that throws by itself does so whether it is recorded or not.
TEST_F(Recording, LetsErrorsThrough) {
  recordings_.repeat(1, [] {});
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(recordings_.repeat(1, [] { throw Error("no", "never"); }), Error);
  ::testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace antichain::test
