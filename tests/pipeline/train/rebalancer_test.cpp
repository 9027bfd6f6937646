// The rule by which a run moves, on steps whose times are made up: a rank works off its share of 100 units at
// its speed, and the step takes as long as the slowest rank.
#include "pipeline/train/rebalancer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace antichain::test {
namespace {

using What = RebalanceReport::What;

// Returns a division by which each rank has the share of the work that its speed says.
Division shared_out(std::vector<double> share, const std::vector<double>& speeds) {
  Division division;
  for (size_t rank = 0; rank < share.size(); ++rank) {
    division.plan.stages.push_back({{int(rank), int(share[rank] * 1000) + 1000}, {int(rank)}});
    division.busy_s.push_back(share[rank] / speeds[rank]);
  }
  division.speeds = speeds;
  division.pace_s = *std::ranges::max_element(division.busy_s);
  return division;
}

std::vector<double> shares(const Division& division) {
  std::vector<double> shares;
  for (size_t rank = 0; rank < division.busy_s.size(); ++rank)
    shares.push_back(division.busy_s[rank] * division.speeds[rank]);
  return shares;
}

Division planned_in(double planning_s, Division division) {
  division.plan.planning_s = planning_s;
  return division;
}

class MadeUpRun {
 public:
  // Planning took so long before the run.
  explicit MadeUpRun(int ranks, int64_t steps = 1000, double planning_s = 0)
      : steps_(steps),
        speeds(size_t(ranks), 1.0),
        now_(planned_in(planning_s, shared_out(std::vector<double>(size_t(ranks), 100.0 / ranks), speeds))),
        rule_(
            now_,
            [this](const Division& now, const std::vector<double>& s) -> Rebalancer::Planned {
              ++planned;
              std::vector<double> best = s;
              const double all = std::accumulate(s.begin(), s.end(), 0.0);
              for (double& share : best) share *= 100 / all;
              return {shared_out(shares(now), s), shared_out(best, s)};
            },
            [this](const RebalanceReport& report) { reports.push_back(report); }) {}

  // Goes on for so many steps. Factors of noise are drawn from 1 ± `noise`. `extra_s` is added to each step
  // after a move.
  void run(int count, double noise = 0, double extra_s = 0) {
    for (; count > 0; --count, ++step) {
      StepMeasure measure{.step = step, .left = steps_ - step - 1};
      const std::vector<double> share = shares(now_);
      for (size_t rank = 0; rank < share.size(); ++rank)
        measure.busy_s.push_back(share[rank] / speeds[rank] *
                                 std::uniform_real_distribution(1 - noise, 1 + noise)(random));
      measure.seconds = *std::ranges::max_element(measure.busy_s) + (moves > 0 ? extra_s : 0);
      seconds = measure.seconds;
      if (const std::optional<Division> next = rule_.see(measure); next && no_room) {
        rule_.refused();
      } else if (next) {
        now_ = *next;
        ++moves;
        rule_.moved({.step = step + 1, .pause_s = 10});
      }
    }
  }

 private:
  const int64_t steps_;

 public:
  std::vector<double> speeds;
  std::mt19937 random{1};
  int64_t step = 0;
  double seconds = 0;
  int moves = 0, planned = 0;
  bool no_room = false;
  std::vector<RebalanceReport> reports;

 private:
  Division now_;
  Rebalancer rule_;
};

TEST(Rebalancer, MovesNothingInNoise) {
  for (const int ranks : {2, 4, 8})
    for (unsigned seed = 1; seed <= 50; ++seed) {
      MadeUpRun run(ranks);
      run.random.seed(seed);
      run.run(500, 0.15);
      EXPECT_EQ(run.moves, 0) << ranks << " ranks, seed " << seed;
    }
}

TEST(Rebalancer, FindsARankOfHalfSpeedWithin20Steps) {
  for (const double noise : {0.0, 0.15})
    for (int since = 0; since < 10; ++since) {
      MadeUpRun run(2);
      run.run(30 + since, noise);
      ASSERT_EQ(run.moves, 0);
      const double before = run.seconds;
      run.speeds[1] = 0.5;
      run.run(20, noise);
      EXPECT_EQ(run.moves, 1) << "slow from step " << 30 + since;
      run.run(40, noise);
      EXPECT_EQ(run.moves, 1);
      EXPECT_LT(run.seconds, before * (1.5 + 2 * noise));  // 66.7 instead of 100, where 50 is undisturbed
      ASSERT_EQ(run.reports.size(), 2u);
      EXPECT_EQ(run.reports[1].what, What::kept);
      EXPECT_LT(run.reports[1].after_s, run.reports[1].before_s);
    }
}

TEST(Rebalancer, MovesBackWhenTheRankIsFastAgain) {
  MadeUpRun run(3);
  run.run(20);
  run.speeds[2] = 0.4;
  run.run(50);
  EXPECT_EQ(run.moves, 1);
  run.speeds[2] = 1;
  run.run(50);
  EXPECT_EQ(run.moves, 2);
  EXPECT_NEAR(run.seconds, 100.0 / 3, 1);
}

// A machine that is slower as a whole, and a share that the planner can't change, are no reason.
// After the move to ranks of speeds 1 and 0.5 all get slower, or the other one does.
TEST(Rebalancer, BlamesAMoveForNothingThatHappensToTheRanksAfterIt) {
  for (const bool all : {true, false}) {
    MadeUpRun run(2);
    run.run(20);
    run.speeds[1] = 0.5;
    while (run.moves == 0) run.run(1);
    run.speeds = all ? std::vector{0.4, 0.2} : std::vector{0.25, 0.5};
    run.run(40);
    EXPECT_EQ(run.moves, all ? 1 : 2);
    ASSERT_GE(run.reports.size(), 2u);
    EXPECT_EQ(run.reports[1].what, What::kept);
    if (!all) {
      EXPECT_NEAR(run.seconds, 100 / 0.75, 1) << "planned anew";
    }
  }
}

TEST(Rebalancer, PlansOnceForSpeedsThatNoPlanIsBetterFor) {
  MadeUpRun run(2);
  run.speeds = {0.5, 0.5};
  run.run(200);
  EXPECT_EQ(run.planned, 0);
  run.speeds = {0.5, 0.45};  // gains 5 %
  run.run(200);
  EXPECT_LE(run.planned, 1);
  EXPECT_EQ(run.moves, 0);
}

TEST(Rebalancer, TakesBackWhatDidNotHelpAndRests) {
  MadeUpRun run(2);
  run.run(20);
  run.speeds[0] = 0.5;
  run.run(40, 0, 100);  // each step takes 100 s more after the move
  ASSERT_EQ(run.reports.size(), 2u);
  EXPECT_EQ(run.reports[0].what, What::moved);
  EXPECT_EQ(run.reports[1].what, What::taken_back);
  EXPECT_GE(run.reports[1].after_s, run.reports[1].before_s);
  EXPECT_EQ(run.moves, 2);
  run.run(RebalanceRule().rest - 5);
  EXPECT_EQ(run.moves, 2);
}

// As a scheduler does that gives the core to one rank for a while, and then to the other.
TEST(Rebalancer, RestsLongerAndLongerWhereMovesDoNotHelp) {
  MadeUpRun run(2, 10'000);
  run.run(20);
  while (run.step < 4000) {
    run.speeds = run.step / 16 % 2 == 0 ? std::vector{1.0, 0.5} : std::vector{0.5, 1.0};
    run.run(1);
  }
  EXPECT_LE(run.moves, 14) << "twice in each rest of 100, 200, 400, … steps";
  EXPECT_GT(run.moves, 0);
  run.speeds = {1.0, 0.5};
  run.run(5000);
  EXPECT_LT(run.seconds, 70) << "a lasting difference is seen again";
}

TEST(Rebalancer, PlansOnlyWhereThatPaysToo) {
  for (const double planning_s : {1000., 100'000.}) {
    MadeUpRun run(2, 1000, planning_s);
    run.run(20);
    run.speeds[1] = 0.5;
    run.run(100);
    EXPECT_EQ(run.planned > 0, planning_s < 10'000) << planning_s;
    EXPECT_EQ(run.moves, run.planned);
  }
}

TEST(Rebalancer, StaysWhereRanksHaveNoMemoryForTheMove) {
  MadeUpRun run(2);
  run.no_room = true;
  run.run(20);
  run.speeds[1] = 0.5;
  run.run(80);
  EXPECT_EQ(run.moves, 0);
  EXPECT_EQ(run.planned, 1);
  EXPECT_TRUE(run.reports.empty());
}

TEST(Rebalancer, MovesNothingShortlyBeforeTheEnd) {
  MadeUpRun run(2, 45);
  run.run(20);
  run.speeds[1] = 0.5;
  run.run(25);  // what is left does not save two pauses
  EXPECT_EQ(run.moves, 0);
}

}  // namespace
}  // namespace antichain::test
