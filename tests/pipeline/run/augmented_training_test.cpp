// Training with every augmentation ends in the same bits whatever the cut, the schedule and the
// interruptions.
#include <gtest/gtest.h>

#include <vector>

#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

TrainingCase augmented_case() {
  return {.microbatches = 3,
          .steps = 4,
          .augment = {.crop = Crop::reflect, .trivial = true, .erase = 0.5, .mixup = 0.4, .cutmix = 1},
          .rate = 0.01f,
          .epochs = 2};
}

TEST(AugmentedTraining, HasTheSameBitsWhateverTheCutAndTheSchedule) {
  const TrainingCase c = augmented_case();
  const TrainingRun whole = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  ASSERT_EQ(whole.losses.size(), 8u);
  for (const int ranks : {2, 3})
    for (const Policy policy : {Policy::one_f_one_b, Policy::gpipe}) {
      const TrainingRun run = train_on_threads(c, ranks, at_random(unsigned(ranks)), by_policy(policy));
      EXPECT_EQ(run.losses, whole.losses) << ranks;
      EXPECT_EQ(run.state, whole.state) << ranks;
      EXPECT_EQ(run.test_accuracy, whole.test_accuracy) << ranks;
    }
}

TEST(AugmentedTraining, EachAugmentationChangesTheNumbers) {
  std::vector<TrainingCase> cases(6, augmented_case());
  for (TrainingCase& c : cases) c.augment = {}, c.epochs = 0, c.steps = 1;
  cases[1].augment.crop = Crop::reflect;
  cases[2].augment.trivial = true;
  cases[3].augment.erase = 1;
  cases[4].augment.mixup = 1;
  cases[5].augment.cutmix = 1;
  std::vector<std::string> states;
  for (const TrainingCase& c : cases) {
    const TrainingRun run = train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
    for (const std::string& state : states) EXPECT_NE(run.state, state) << states.size();
    states.push_back(run.state);
  }
}

TEST(AugmentedTraining, GoesOnInTheMiddleOfAnEpochAsIfItHadNotStopped) {
  const TemporaryFolder folder;
  TrainingCase c = augmented_case();
  const TrainingRun whole = train_on_threads(c, 2, by_antichains, by_policy(Policy::one_f_one_b));
  c.checkpoint = folder.str();
  c.until = 5;
  train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  c.until = 0;
  const TrainingRun rest = train_on_threads(c, 3, by_antichains, by_policy(Policy::one_f_one_b));
  EXPECT_EQ(rest.first_step, 5);
  EXPECT_EQ(rest.losses, std::vector(whole.losses.begin() + 5, whole.losses.end()));
  EXPECT_EQ(rest.state, whole.state);
  EXPECT_EQ(rest.test_accuracy, whole.test_accuracy);
}

}  // namespace
}  // namespace antichain::test
