// A number that is none is traced to the node, micro-batch and step that made it, the same ones however the
// model is cut. A step that is skipped leaves no trace.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "framework/error.h"
#include "partition/planners/planner.h"
#include "pipeline/run/non_finite.h"
#include "pipeline/schedule/policy.h"
#include "pipeline/train/on_nan.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain {
namespace {

using antichain::test::by_antichains;
using antichain::test::train_on_threads;
using antichain::test::TrainingCase;
using antichain::test::TrainingRun;

class Numbers : public ::testing::Test {
 protected:
  void TearDown() override { ::unsetenv("ANTICHAIN_FAULT"); }

  static TrainingRun run(int stages, OnNan on_nan, const std::string& fault, float rate = 0.05f,
                         int steps = 5) {
    ::setenv("ANTICHAIN_FAULT", fault.c_str(), 1);
    TrainingCase c;
    c.on_nan = on_nan;
    c.rate = rate;
    c.steps = steps;
    const auto schedule = [&](const Profile& profile, const Plan& plan, int microbatches) {
      const Schedule made = make_schedule(profile, plan, Policy::one_f_one_b, microbatches);
      return on_nan == OnNan::abort ? made : with_votes(made);
    };
    return train_on_threads(c, stages, by_antichains, schedule);
  }

  // What the run says when it ends.
  static std::string sentence(int stages, OnNan on_nan, const std::string& fault, float rate = 0.05f,
                              int steps = 5) {
    try {
      run(stages, on_nan, fault, rate, steps);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_a_number) << error.what();
      return error.what();
    }
    return "";
  }
  // Without the rank, which may differ.
  static std::string place(std::string text) {
    const size_t at = text.find(" (rank ");
    if (at != std::string::npos) text.erase(at, text.find(')', at) + 1 - at);
    return text;
  }
};

constexpr const char* early = "nan:rank=-1:step=2:microbatch=1:activation:narrow";
constexpr const char* late = "nan:rank=-1:step=1:microbatch=3:activation:conv";
constexpr const char* back = "nan:rank=-1:step=2:microbatch=2:gradient:wide";

TEST_F(Numbers, NamesNodeMicroBatchAndStep) {
  EXPECT_NE(sentence(1, OnNan::abort, early).find("step 3, micro-batch 1: the output of node narrow"),
            std::string::npos)
      << sentence(1, OnNan::abort, early);
  EXPECT_NE(sentence(2, OnNan::abort, back).find("step 3, micro-batch 2: the gradient that node wide"),
            std::string::npos)
      << sentence(2, OnNan::abort, back);
}

TEST_F(Numbers, NamesTheSamePlaceOnAnyNumberOfStages) {
  for (const char* fault : {early, late, back}) {
    const std::string alone = place(sentence(1, OnNan::abort, fault));
    ASSERT_NE(alone, "");
    EXPECT_EQ(place(sentence(2, OnNan::abort, fault)), alone);
    EXPECT_EQ(place(sentence(3, OnNan::abort, fault)), alone);
  }
}

TEST_F(Numbers, ADivergedRunIsTracedAlike) {
  const std::string alone = sentence(1, OnNan::abort, "", 1e20f);
  ASSERT_NE(alone, "");
  EXPECT_EQ(place(sentence(2, OnNan::abort, "", 1e20f)), place(alone));
  EXPECT_EQ(place(sentence(3, OnNan::abort, "", 1e20f)), place(alone));
}

TEST_F(Numbers, ASkippedStepLeavesNoTrace) {
  const TrainingRun undisturbed = run(1, OnNan::skip, "");
  for (const char* fault : {early, back}) {
    const TrainingRun alone = run(1, OnNan::skip, fault), two = run(2, OnNan::skip, fault);
    EXPECT_EQ(two.state, alone.state);
    EXPECT_NE(alone.state, undisturbed.state) << "one update fewer";
    ASSERT_EQ(alone.losses.size(), undisturbed.losses.size());
    for (size_t step = 0; step < 2; ++step) EXPECT_EQ(alone.losses[step], undisturbed.losses[step]);
    for (size_t step = 3; step < alone.losses.size(); ++step) {
      EXPECT_TRUE(std::isfinite(alone.losses[step])) << step;
      EXPECT_EQ(alone.losses[step], two.losses[step]);
    }
  }
}

TEST_F(Numbers, WhereAndHowSkippingWasToldDoesNotMatter) {
  // The same step is skipped, for a NaN in its forward and in its backward: the same state.
  EXPECT_EQ(run(1, OnNan::skip, early).state, run(1, OnNan::skip, back).state);
}

TEST_F(Numbers, SkippingDoesNotMendADivergedRun) {
  const std::string alone = sentence(1, OnNan::skip, "", 1e20f, NanPolicy::most_in_a_row + 5);
  ASSERT_NE(alone, "");
  EXPECT_EQ(place(sentence(2, OnNan::skip, "", 1e20f, NanPolicy::most_in_a_row + 5)), place(alone));
}

TEST(NonFinites, TheFirstIsTheCause) {
  using enum NonFinite::Phase;
  const NonFinite cause{.microbatch = 1, .phase = forward, .node = 7, .rank = 1};
  const NonFinite later_node{.microbatch = 1, .phase = forward, .node = 9};
  const NonFinite backward_of_same{.microbatch = 1, .phase = backward, .node = 2};
  const NonFinite next{.microbatch = 2, .phase = forward, .node = 1};
  const NonFinite upper{.microbatch = 1, .phase = backward, .node = 12};
  const NonFinite sum{.microbatch = 0, .phase = update, .node = 12};
  for (const NonFinite& other : {later_node, backward_of_same, next, upper, sum}) EXPECT_LT(cause, other);
  EXPECT_LT(upper, backward_of_same) << "backward runs downwards";
  EXPECT_LT(next, sum);
  EXPECT_EQ(first_non_finite({{.bad = false, .first = cause}, {.bad = false, .first = {}}}), std::nullopt)
      << "a NaN that a ReLU swallowed";
  EXPECT_EQ(first_non_finite({{.bad = true, .first = next}, {.bad = false, .first = cause}}), cause);
  const NumberReport report{.bad = true, .first = upper};
  EXPECT_EQ(report_from_text(to_text(report)).first, upper);
  EXPECT_TRUE(report_from_text(to_text(report)).bad);
  EXPECT_FALSE(report_from_text(to_text({})).first);
}

}  // namespace
}  // namespace antichain
