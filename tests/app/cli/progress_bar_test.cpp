// Tests what a progress bar shows, on a terminal and elsewhere.
#include "app/cli/progress_bar.h"

#include <gtest/gtest.h>

namespace antichain {
namespace {

TEST(ProgressBar, ShowsHowFarAndHowLong) {
  const ProgressState state{
      .done = 50, .total = 200, .epoch = 2, .loss = 1.23456, .accuracy = 0.5, .images_per_s = 812};
  const std::string text = "epoch 2  step 50/200  loss 1.2346  accuracy 50.0 %  812 images/s  left 3:00";
  EXPECT_EQ(ProgressBar::render(state, 60, 0), text);
  ProgressState averaged = state;
  averaged.mean_loss = 1.5;
  EXPECT_NE(ProgressBar::render(averaged, 60, 0).find("loss 1.2346 (mean 1.5000)  accuracy"),
            std::string::npos);
  const int columns = int(text.size());
  EXPECT_EQ(ProgressBar::render(state, 60, columns + 11), "[==      ] " + text);
  EXPECT_EQ(ProgressBar::render(state, 60, columns + 10), text) << "no room for a bar worth drawing";
  EXPECT_EQ(ProgressBar::render(state, 60, 10), text.substr(0, 10)) << "a longer line would wrap and pile up";
  EXPECT_EQ(ProgressBar::render({.done = 0, .total = 5, .epoch = 1}, 1, 0),
            "epoch 1  step 0/5  loss 0.0000  accuracy 0.0 %  0 images/s  left 0:00");
}

TEST(ProgressBar, TheTimeLeftIsOfThisStartsPace) {
  // 50 steps in a minute, 100 to go; the first 50 were another start's.
  EXPECT_EQ(ProgressBar::render({.done = 100, .total = 200, .before = 50, .epoch = 1}, 60, 0),
            "epoch 1  step 100/200  loss 0.0000  accuracy 0.0 %  0 images/s  left 2:00");
}

TEST(ProgressBar, IsPlainAndRareWhereThereIsNoTerminal) {
  std::FILE* file = std::tmpfile();
  {
    ProgressBar bar(file);
    for (int step = 1; step <= 5000; ++step) bar.show({.done = step, .total = 5000, .epoch = 1});
  }
  std::rewind(file);
  int lines = 0, controls = 0;
  for (int c; (c = std::fgetc(file)) != EOF;) {
    lines += c == '\n';
    controls += c == '\r' || c == '\x1b';
  }
  std::fclose(file);
  EXPECT_EQ(lines, 2) << "the first and the last step: 5000 take far less than 10 s";
  EXPECT_EQ(controls, 0);
}

TEST(ProgressBar, OfAnEstimateShowsShareAndTimeLeft) {
  const std::string text = "measuring resnet20: conv1  left 0:12";
  EXPECT_EQ(ProgressBar::render_share(0.25, 12, "measuring resnet20: conv1", 0), text);
  EXPECT_EQ(ProgressBar::render_share(0.25, 12, "measuring resnet20: conv1", int(text.size()) + 11),
            "[==      ] " + text);
  std::FILE* file = std::tmpfile();
  {
    ProgressBar bar(file);
    for (int i = 0; i <= 1000; ++i) bar.show_share(i * 1e-3, 1 - i * 1e-3, "measuring");
  }
  EXPECT_EQ(std::ftell(file), 0) << "a log is not told of what takes less than 10 s";
  std::fclose(file);
}

TEST(ProgressBar, Durations) {
  EXPECT_EQ(duration(0.2), "0:00");
  EXPECT_EQ(duration(187), "3:07");
  EXPECT_EQ(duration(3765), "1:02:45");
}

}  // namespace
}  // namespace antichain
