// A time sheet says what a rank's time was spent on: kinds add up to the wall time, and a real step's are
// where they belong.
#include "pipeline/run/time_sheet.h"

#include <gtest/gtest.h>

#include <thread>

namespace antichain {
namespace {

using Clock = std::chrono::steady_clock;
void pause_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(TimeSheet, AddsUpToTheWallTime) {
  TimeSheet sheet;
  pause_ms(5);  // before the first entry: nobody's
  const auto begin = Clock::now();
  sheet.enter(Spent::forward);
  pause_ms(20);
  EXPECT_EQ(sheet.enter(Spent::waiting), Spent::forward);
  pause_ms(10);
  EXPECT_EQ(sheet.enter(Spent::forward), Spent::waiting);
  sheet.stop();
  const double wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
  EXPECT_GE(sheet.seconds(Spent::forward), 0.020);
  EXPECT_GE(sheet.seconds(Spent::waiting), 0.010);
  EXPECT_LE(sheet.total_s(), wall_s);
  // Between two readings of the clock lies next to nothing; the thread may lose its core there.
  EXPECT_NEAR(sheet.total_s(), wall_s, 0.005);
  EXPECT_EQ(sheet.computing_s(), sheet.seconds(Spent::forward));
  EXPECT_EQ(sheet.seconds(Spent::backward), 0);
}

TEST(TimeSheet, StandsStillBetweenStopAndEnter) {
  TimeSheet sheet;
  sheet.enter(Spent::data);
  sheet.stop();
  const double before_s = sheet.total_s();
  pause_ms(10);
  sheet.stop();
  EXPECT_EQ(sheet.total_s(), before_s);
  sheet.enter(Spent::update);
  pause_ms(3);
  sheet.stop();
  EXPECT_GE(sheet.seconds(Spent::update), 0.003);
}

TEST(TimeSheet, TravelsAsText) {
  TimeSheet sheet;
  for (size_t kind = 0; kind < kinds_of_spent; ++kind) sheet.enter(Spent(kind)), pause_ms(1);
  sheet.stop();
  sheet.set_starved(1. / 3);
  const TimeSheet there = TimeSheet::from_text(sheet.text());
  EXPECT_EQ(there.starved_s(), 1. / 3) << "all digits";
  for (size_t kind = 0; kind < kinds_of_spent; ++kind) {
    EXPECT_EQ(there.seconds(Spent(kind)), sheet.seconds(Spent(kind))) << name_of(Spent(kind));
    EXPECT_GT(there.seconds(Spent(kind)), 0) << name_of(Spent(kind));
  }
}

}  // namespace
}  // namespace antichain
