#include "app/progress_bar.h"

#include <gtest/gtest.h>

namespace antichain {
namespace {

TEST(ProgressBar, ShowsHowFarAndHowLong) {
  const ProgressState state{
      .done = 50, .total = 200, .epoch = 1, .loss = 1.23456, .accuracy = 0.5, .images_per_s = 812};
  EXPECT_EQ(ProgressBar::render(state, 60, 8),
            "[==      ] epoch 2  step 50/200  loss 1.2346  accuracy 50.0 %  812 images/s  left 3:00");
  EXPECT_EQ(ProgressBar::render({.done = 0, .total = 5}, 1, 0),
            "epoch 1  step 0/5  loss 0.0000  accuracy 0.0 %  0 images/s  left 0:00");
}

TEST(ProgressBar, Durations) {
  EXPECT_EQ(duration(0.2), "0:00");
  EXPECT_EQ(duration(187), "3:07");
  EXPECT_EQ(duration(3765), "1:02:45");
}

}  // namespace
}  // namespace antichain
