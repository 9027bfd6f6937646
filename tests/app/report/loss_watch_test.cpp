// These tests replay recorded losses of runs on CIFAR-10. Those that learn are left alone, however slowly
// they begin.
#include "app/report/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antichain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// AlexNet, batch 64, rate 0.02: it stands at ln 10 for 140 steps, then learns.
const std::vector<double> late = {
    2.30, 2.31, 2.30, 2.30, 2.30, 2.30, 2.30, 2.31, 2.31, 2.30, 2.31, 2.31, 2.30, 2.30, 2.30, 2.30, 2.30,
    2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.31, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30,
    2.30, 2.30, 2.31, 2.31, 2.30, 2.30, 2.30, 2.31, 2.30, 2.31, 2.31, 2.31, 2.31, 2.31, 2.31, 2.31, 2.30,
    2.30, 2.30, 2.31, 2.30, 2.31, 2.30, 2.30, 2.31, 2.31, 2.30, 2.30, 2.30, 2.31, 2.30, 2.30, 2.32, 2.29,
    2.30, 2.30, 2.31, 2.31, 2.31, 2.30, 2.30, 2.31, 2.30, 2.31, 2.31, 2.30, 2.31, 2.29, 2.30, 2.31, 2.29,
    2.31, 2.30, 2.29, 2.30, 2.30, 2.30, 2.30, 2.29, 2.33, 2.30, 2.30, 2.30, 2.31, 2.31, 2.30, 2.31, 2.30,
    2.30, 2.30, 2.31, 2.30, 2.31, 2.29, 2.30, 2.30, 2.30, 2.30, 2.29, 2.30, 2.31, 2.31, 2.31, 2.29, 2.29,
    2.30, 2.31, 2.29, 2.30, 2.30, 2.28, 2.30, 2.30, 2.29, 2.28, 2.28, 2.28, 2.27, 2.30, 2.29, 2.28, 2.28,
    2.23, 2.28, 2.29, 2.33, 2.21, 2.23, 2.31, 2.24, 2.23, 2.26, 2.31, 2.24, 2.25, 2.22, 2.21, 2.25, 2.19,
    2.23, 2.24, 2.13, 2.11, 2.13, 2.20, 2.15, 2.17, 2.19, 2.22, 2.18, 2.24, 2.21, 2.08, 2.24, 2.17, 2.19,
    2.18, 2.16, 2.15, 2.16, 2.10, 2.03, 2.20, 2.05, 2.13, 2.25, 2.21, 2.13, 2.13, 2.20, 2.06, 2.17, 2.08,
    2.08, 2.17, 2.13, 2.18, 2.11, 2.18, 2.12, 2.09, 2.09, 2.16, 2.16, 2.01, 2.14};
// SqueezeNet, batch 16, rate 0.05: all its outputs are 0 after some steps and stay so.
const std::vector<double> dead = {2.30, 2.30, 2.56, 2.34, 2.31, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30,
                                  2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30,
                                  2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.31, 2.30, 2.30,
                                  2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30,
                                  2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30, 2.30};
// ResNet-18, batch 8, rate 0.3.
const std::vector<double> diverged = {2.28, 9.30, 18.47, 21.88, 99.04, 33.63, 29.98, 17.37, 7.49, 5.14,
                                      2.04, 2.43, 2.34,  2.33,  2.58,  2.51,  2.14,  2.61,  2.32, 2.37,
                                      2.30, 2.44, 2.43,  2.31,  2.22,  2.42,  2.43,  2.23,  2.22, 2.45,
                                      2.43, 2.28, 2.46,  2.26,  2.24,  2.30,  2.43,  2.60,  2.64, 2.61};

const WatchedRun run{.model = "resnet18", .classes = 10, .peak = 0.3, .recipe_peak = 0.05};

// What is said, and after which step.
struct Said {
  size_t step = 0;
  std::string sentence;
  int times = 0;
};
Said said(const std::vector<double>& losses, const WatchedRun& about = run) {
  LossWatch watch(about);
  Said all;
  for (size_t i = 0; i < losses.size(); ++i)
    if (const std::string sentence = watch.see(losses[i]); !sentence.empty())
      all = {i + 1, sentence, all.times + 1};
  return all;
}

TEST(LossWatch, LeavesARunAloneThatBeginsLate) { EXPECT_EQ(said(late).sentence, ""); }

TEST(LossWatch, TellsOnceThatTheNetworkGuesses) {
  std::vector<double> losses = dead;
  losses.resize(500, 2.3026);
  const Said once = said(losses);
  EXPECT_EQ(once.times, 1);
  EXPECT_EQ(once.step, 200u);
  EXPECT_THAT(once.sentence, HasSubstr("stood at ln(10) = 2.303 for 100 steps"));
  EXPECT_THAT(once.sentence, HasSubstr("--lr (0.3 is the peak, resnet18's recipe has 0.05)"));
}

TEST(LossWatch, TellsOnceThatTheLossIsFarAboveItsBeginning) {
  std::vector<double> losses = diverged;
  losses.resize(500, 2.3026);
  const Said once = said(losses);
  EXPECT_EQ(once.times, 1) << "what then stands at ln 10 comes of the same rate";
  EXPECT_EQ(once.step, 6u);
  EXPECT_THAT(once.sentence, HasSubstr("was 2.3 in the first: it diverges"));
}

TEST(LossWatch, DoesNotBlameTheRecipesOwnRate) {
  std::vector<double> losses(300, 2.3026);
  const Said own = said(losses, {.model = "m", .classes = 10, .peak = 0.05, .recipe_peak = 0.05});
  EXPECT_THAT(own.sentence, HasSubstr("(0.05 is the peak)"));
  EXPECT_THAT(own.sentence, Not(HasSubstr("recipe")));
}

TEST(LossWatch, OneBadStepIsNoDivergence) {
  std::vector<double> losses(50, 2.4);
  losses[20] = 6;
  EXPECT_EQ(said(losses).sentence, "");
}

// Trained weights begin far below a guess, and their first steps may undo some of it.
TEST(LossWatch, LeavesTrainedWeightsAlone) {
  std::vector<double> losses(50, 0.3);
  losses[0] = 0.02;
  EXPECT_EQ(said(losses).sentence, "");
}

TEST(LossWatch, HasMorePatienceWithManyClasses) {
  const WatchedRun thousand{.model = "m", .classes = 1000, .peak = 0.1, .recipe_peak = 0.1};
  EXPECT_EQ(said(std::vector<double>(1500, 6.9078), thousand).sentence, "");
  EXPECT_EQ(said(std::vector<double>(2500, 6.9078), thousand).step, 2000u);
}

}  // namespace
}  // namespace antichain
