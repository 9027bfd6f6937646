// A run that goes over from plan to plan between its steps ends with the bits of one that stays on its plan,
// whatever it keeps: momentum, moments, averages, statistics of batch norms, weights that several nodes have.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <utility>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/files/checkpoint_folder.h"
#include "pipeline/schedule/lane.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/planning/networks.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain::test {
namespace {

// Goes over to the next of random plans after every step that it sees.
class MovesOften : public MoveRule {
 public:
  using Divide = std::function<Division(unsigned seed)>;
  MovesOften(Divide divide, unsigned seed, std::vector<Moved>* moves)
      : divide_(std::move(divide)), seed_(seed), moves_(moves) {}
  std::optional<Division> see(const StepMeasure& step) override {
    EXPECT_GT(std::ranges::min(step.busy_s), 0) << "after step " << step.step;
    if (std::exchange(under_way_, true)) return {};
    return divide_(++seed_);
  }
  void moved(const MoveReport& report) override {
    under_way_ = false;
    if (moves_) moves_->push_back(report.moved);
  }
  void refused() override { under_way_ = false; }

 private:
  const Divide divide_;
  unsigned seed_;
  std::vector<Moved>* moves_;
  bool under_way_ = false;
};

MakePlan cut(const std::vector<int>& rank_of_stage, unsigned seed) {
  return placed(at_random(seed), rank_of_stage);
}

// Trains on as many ranks as the stages name. Their order is another one in each plan.
TrainingRun moving(TrainingCase c, std::vector<int> rank_of_stage, std::vector<Moved>* moves = nullptr,
                   unsigned seed = 1, const Policy& policy = Policy::gpipe) {
  const int ranks = *std::ranges::max_element(rank_of_stage) + 1;
  const bool votes = c.clip_norm > 0;
  const MakeSchedule schedule = by_policy(policy);
  const int microbatches = c.microbatches;
  c.moves = [=](const Profile& profile) {
    const auto divide = [=](unsigned n) {
      std::vector<int> order = rank_of_stage;
      std::mt19937 random(n);
      std::ranges::shuffle(order, random);
      const Plan plan = cut(order, n)(profile, ranks);
      const Schedule made = schedule(profile, plan, microbatches);
      return Division{.plan = plan,
                      .schedule = votes ? with_votes(made) : made,
                      .setting = {{"cut", fmt::format("{}", n)}}};
    };
    return std::make_unique<MovesOften>(divide, seed * 100, moves);
  };
  return train_on_threads(c, ranks, cut(rank_of_stage, seed), schedule);
}

TrainingRun staying(const TrainingCase& c) {
  return train_on_threads(c, 1, at_random(0), by_policy(Policy::one_f_one_b));
}

struct Learns {
  const char *name, *model;
  std::shared_ptr<const Optimiser> optimiser;
  double clip_norm;
};

class Moves : public ::testing::TestWithParam<Learns> {};

TEST_P(Moves, ChangeNoBit) {
  TrainingCase c{.model = GetParam().model, .microbatch = 2, .microbatches = 4, .steps = 16};
  c.rate = 0.01f;
  c.optimiser = GetParam().optimiser;
  c.clip_norm = GetParam().clip_norm;
  c.evaluate_every = 7;
  const TrainingRun one = staying(c);
  ASSERT_NE(one.losses[0], one.losses[1]);
  const std::vector<std::vector<int>> placements = {{0, 1}, {0, 1, 2}, {0, 1, 0, 1}};
  for (const std::vector<int>& ranks : placements) {
    std::vector<Moved> moves;
    const TrainingRun run = moving(c, ranks, &moves);
    expect_same(run, one, fmt::format("{} stages", ranks.size()));
    EXPECT_EQ(run.test_losses, one.test_losses);
    EXPECT_GE(moves.size(), 3u);
    int64_t bytes = 0;
    for (const Moved& moved : moves) bytes += moved.bytes;
    EXPECT_GT(bytes, 0);
  }
}

std::shared_ptr<const Optimiser> averaged_adamw() {
  return std::make_shared<Averaged>(std::make_shared<AdamW>(AdamWOptions()), 0.9);
}

INSTANTIATE_TEST_SUITE_P(Of, Moves,
                         ::testing::Values(Learns{"Momentum", "every_edge", default_optimiser(), 0},
                                           Learns{"Moments", "every_edge", averaged_adamw(), 0.5},
                                           Learns{"SharedWeights", "tied", averaged_adamw(), 0},
                                           Learns{"SeveralUses", "unrolled", default_optimiser(), 0.5}),
                         [](const auto& test) { return test.param.name; });

// Each checkpoint says of which plan it is, and goes on from there to the same bits.
TEST(MovedRun, HasCheckpointsOfEachPlan) {
  const TemporaryFolder folder;
  TrainingCase c{.microbatch = 2, .microbatches = 4, .steps = 16, .rate = 0.01f, .epochs = 1};
  const TrainingRun one = staying(c);
  c.checkpoint = folder.str();
  c.every_steps = 1;
  c.until = 12;
  moving(c, {0, 1});
  const std::string newest = CheckpointFolder(folder.str()).list().front();
  const Manifest manifest = verify_checkpoint(newest);
  EXPECT_EQ(manifest.position.step, 12);
  EXPECT_TRUE(manifest.setting.contains("cut"));
  c.until = 0;
  const TrainingRun rest = moving(c, {0, 1, 2}, nullptr, 2);
  EXPECT_EQ(rest.first_step, 12);
  EXPECT_EQ(rest.state, one.state);
}

// A process is killed at random moments of a run that is mostly moving. What is on disk is whole each time.
void survive(int kills) {
  const TemporaryFolder folder;
  TrainingCase c{.microbatch = 1, .microbatches = 4, .steps = 40, .rate = 0.01f, .epochs = 1};
  std::mt19937 random(5);
  c.checkpoint = folder.str();
  c.every_steps = 2;
  const auto leg = [&](unsigned seed) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    int code = 1;
    try {
      moving(c, {0, 1}, nullptr, seed);
      code = 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    ::_exit(code);
  };
  int killed = 0, resumed = 0, status = 0;
  for (unsigned seed = 1; killed < kills; ++seed) {
    if (const auto there = CheckpointFolder(folder.str()).list(); !there.empty()) {
      ++resumed;
      if (verify_checkpoint(there.front()).position.step == 40)
        std::filesystem::remove_all(folder.str()), std::filesystem::create_directory(folder.str());
    }
    CheckpointFolder(folder.str()).clean();
    const pid_t child = leg(seed);
    // The first one has begun to save, however slow the machine is.
    for (int i = 0; i < 2000 && seed == 1 && CheckpointFolder(folder.str()).list().empty(); ++i)
      ::usleep(10'000);
    ::usleep(useconds_t(50'000 + random() % 250'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  }
  CheckpointFolder(folder.str()).clean();
  ::waitpid(leg(1000), &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const std::string end = CheckpointFolder(folder.str()).of_step(40);
  EXPECT_GT(resumed, kills / 4);
  TrainingCase undisturbed = c;
  const TemporaryFolder other;
  undisturbed.checkpoint = other.str();
  staying(undisturbed);
  EXPECT_TRUE(checkpoint_contents(end) == checkpoint_contents(CheckpointFolder(other.str()).of_step(40)));
}

TEST(MovedRun, SurvivesKills) { survive(3); }
TEST(LargeMovedRun, Survives20Kills) { survive(20); }

}  // namespace
}  // namespace antichain::test
