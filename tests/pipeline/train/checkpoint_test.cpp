// What checkpoints hold, when they are written, and what comes back from them: after a NaN, a signal, or a
// loss of patience. (run/same_bits_test.cpp has runs that were cut short and go on.)
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <filesystem>

#include "framework/json.h"
#include "framework/random.h"
#include "pipeline/host/stop_signals.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain {
namespace {

using namespace test;

// Returns two epochs of three steps.
TrainingCase two_epochs() {
  return {.microbatch = 2, .microbatches = 2, .steps = 3, .rate = 0.01f, .epochs = 2};
}

TrainingRun train(const TrainingCase& c, int stages) {
  return train_on_threads(c, stages, by_antichains, by_policy(Policy::one_f_one_b));
}

class Checkpointing : public ::testing::Test {
 protected:
  std::string folder(const std::string& name) {
    const std::string path = temporary_.str() + "/" + name;
    std::filesystem::create_directory(path);
    return path;
  }
  TemporaryFolder temporary_;
};

TEST_F(Checkpointing, WritesEverySoManyStepsAndKeepsTheNewest) {
  TrainingCase c = two_epochs();
  c.checkpoint = folder("run");
  c.every_steps = 2;
  c.keep = 2;
  const TrainingRun run = train(c, 2);
  std::vector<int64_t> steps;
  for (const CheckpointReport& report : run.checkpoints) {
    EXPECT_EQ(report.failure + report.warning, "");
    EXPECT_GT(report.bytes, 2 * 4 * 17'000);  // 17,000 parameters and their momentum
    steps.push_back(report.step);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 4, 6}));
  const CheckpointFolder there(c.checkpoint);
  EXPECT_EQ(there.list(), (std::vector<std::string>{there.of_step(6), there.of_step(4)}));
  EXPECT_EQ(there.clean(), 0);  // nothing half done is left
}

// Names and shapes as torchvision has them, momentum beside them, whatever layout the engine computes in.
TEST_F(Checkpointing, HoldPlainTensorsByTheirNames) {
  TrainingCase c = two_epochs();
  c.checkpoint = folder("run");
  c.until = 1;
  train(c, 2);
  const auto all = checkpoint_contents(CheckpointFolder(c.checkpoint).of_step(1));
  EXPECT_EQ(all.at("stem.weight").shape, (std::vector<int64_t>{16, 3, 3, 3}));
  EXPECT_EQ(all.at("momentum/stem.weight").shape, (std::vector<int64_t>{16, 3, 3, 3}));
  EXPECT_EQ(std::get<1>(all.at("stem.norm.num_batches_tracked").values)[0], 2);  // micro-batches
  EXPECT_FALSE(all.contains("momentum/stem.norm.running_mean"));
}

// Whoever makes the hashes anew can write any number: what nothing can be computed with is refused all the
// same.
TEST_F(Checkpointing, NumbersThatAreNoneAreRefused) {
  for (const float number : {std::nanf(""), -1.0f}) {
    TrainingCase c = two_epochs();
    c.checkpoint = folder(std::to_string(number));
    c.until = 1;
    train(c, 1);
    const std::string checkpoint = CheckpointFolder(c.checkpoint).of_step(1);
    const std::vector<float> variances =
        std::get<0>(checkpoint_contents(checkpoint).at("stem.norm.running_var").values);
    Manifest manifest = verify_checkpoint(checkpoint);
    const std::string file = checkpoint + "/" + manifest.files[0].name;
    std::string bytes = read_checkpoint_file(checkpoint, manifest.files[0]);
    const size_t place = bytes.find(
        std::string_view(reinterpret_cast<const char*>(variances.data()), variances.size() * sizeof(float)));
    ASSERT_NE(place, std::string::npos);
    std::memcpy(bytes.data() + place, &number, sizeof number);
    manifest.files[0].hash = hash_bytes(bytes);
    write_file(file, bytes);
    write_file(checkpoint + "/manifest.json", to_json(manifest));
    c.until = 0;
    expect_error([&] { train(c, 1); },
                 {file, "'stem.norm.running_var' has", "resume from an older checkpoint"});
  }
}

// Back to the state of the newest checkpoint, on with the batch after the spoilt one: the same bits as a run
// that was given that state and that position in the data.
TEST_F(Checkpointing, RewindsToTheNewestOneAndLeavesOutWhatCameSince) {
  TrainingCase c = two_epochs();
  c.steps = 8, c.epochs = 1, c.every_steps = 3;
  c.on_nan = OnNan::rewind;
  int legs = 0;
  // Spoilt in step 5; in step 4 (counted from 1), while the checkpoint of step 3 is being written.
  for (const auto& [spoilt, what] :
       {std::pair(5, "microbatch=1:activation:narrow"), {4, "microbatch=0:gradient:conv"}}) {
    TrainingCase expected = c;
    expected.checkpoint = folder("expected" + std::to_string(++legs));
    expected.until = 3;
    train(expected, 1);
    const std::string saved = CheckpointFolder(expected.checkpoint).of_step(3);
    Manifest manifest = verify_checkpoint(saved);
    manifest.position.step = manifest.position.batch = spoilt;
    std::filesystem::remove(saved + "/manifest.json");
    write_synced(saved + "/manifest.json", to_json(manifest));
    std::filesystem::rename(saved, CheckpointFolder(expected.checkpoint).of_step(spoilt));
    expected.until = 0;
    const TrainingRun same = train(expected, 1);
    for (const int stages : {1, 2, 3}) {
      TrainingCase rewound = c;
      rewound.checkpoint = folder(fmt::format("rewound-{}-{}", legs, stages));
      std::string reason;
      rewound.on_step = [&](const StepReport& report) { reason += report.skipped_because; };
      ::setenv("ANTICHAIN_FAULT", fmt::format("nan:rank=-1:step={}:{}", spoilt - 1, what).c_str(), 1);
      const TrainingRun run = train(rewound, stages);
      ::unsetenv("ANTICHAIN_FAULT");
      const std::string how = fmt::format("step {} on {} stages", spoilt, stages);
      EXPECT_NE(reason.find(fmt::format("step {}, micro-batch", spoilt)), std::string::npos) << reason;
      ASSERT_EQ(run.losses.size(), 8u) << how;
      EXPECT_EQ(std::vector<double>(run.losses.begin() + spoilt, run.losses.end()), same.losses) << how;
      EXPECT_EQ(run.state, same.state) << how;
      EXPECT_TRUE(checkpoint_contents(CheckpointFolder(rewound.checkpoint).of_step(8)) ==
                  checkpoint_contents(CheckpointFolder(expected.checkpoint).of_step(8)))
          << how;  // momentum, too
    }
  }
}

TEST_F(Checkpointing, RewindingNeedsSomethingToGoBackTo) {
  TrainingCase c = two_epochs();
  c.every_steps = 3;
  c.on_nan = OnNan::rewind;
  c.checkpoint = folder("run");
  ::setenv("ANTICHAIN_FAULT", "nan:rank=-1:step=1:microbatch=0:activation:narrow", 1);
  for (const int stages : {1, 2}) {
    try {
      train(c, stages);
      ADD_FAILURE() << "it went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_a_number);
      EXPECT_NE(std::string(error.what()).find("step 2, micro-batch 0"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("no checkpoint to go back to"), std::string::npos);
    }
  }
  ::unsetenv("ANTICHAIN_FAULT");
}

// What can't be written is told, and training goes on to the same end.
TEST_F(Checkpointing, AFailedWriteIsNoMoreThanAWarning) {
  TrainingCase c = two_epochs();
  const TrainingRun undisturbed = train(c, 2);
  c.checkpoint = folder("run");
  c.every_steps = 2;
  // Where rank 1's file of step 4 should go, there is a folder.
  std::filesystem::create_directories(CheckpointFolder(c.checkpoint).partial_of(4) + "/stage-1.h5");
  const TrainingRun run = train(c, 2);
  EXPECT_EQ(run.state, undisturbed.state);
  ASSERT_EQ(run.checkpoints.size(), 3u);
  EXPECT_NE(run.checkpoints[1].failure.find(".partial-000000000004: it holds stage-1.h5, which no"),
            std::string::npos)
      << run.checkpoints[1].failure;
  EXPECT_EQ(run.checkpoints[0].failure + run.checkpoints[2].failure, "");
  const CheckpointFolder there(c.checkpoint);
  EXPECT_EQ(there.list(), (std::vector<std::string>{there.of_step(6), there.of_step(2)}));
  EXPECT_EQ(there.clean(), 0);  // the folder that no checkpoint has stays
}

// Five epochs of three steps that evaluate after every second step and lose patience on the way: the rate is
// too high for the test set to follow.
TrainingCase impatient(const std::string& folder) {
  TrainingCase c = two_epochs();
  c.epochs = 5, c.rate = 0.06f;
  c.evaluate_every = 2, c.patience = 2;
  c.checkpoint = folder;
  c.keep = 2, c.every_steps = 3, c.keep_best = true;
  return c;
}

TEST_F(Checkpointing, EndsEarlyAndKeepsTheBestOnAnyNumberOfStages) {
  const TrainingRun one = train(impatient(folder("one")), 1);
  ASSERT_LT(one.steps, 15) << "the run was to lose patience";
  ASSERT_GE(one.evaluated.size(), 3u);
  for (size_t i = 0; i < one.evaluated.size(); ++i) EXPECT_EQ(one.evaluated[i], 2 * int64_t(i + 1));
  EXPECT_EQ(one.steps, one.evaluated.back());
  EXPECT_EQ(one.best.step, one.steps - 4) << "two evaluations were not better";
  EXPECT_EQ(one.best.loss, one.test_losses[one.test_losses.size() - 3]);
  EXPECT_NE(one.ended_early, "");
  const CheckpointFolder there(folder("one"));
  EXPECT_EQ(there.list().size(), 2u);
  EXPECT_EQ(there.list()[0], there.of_step(one.steps));
  EXPECT_EQ(verify_checkpoint(there.best()).position.step, one.best.step);
  const auto best = checkpoint_contents(there.best());
  TrainingCase up_to_best = impatient(folder("part"));
  up_to_best.until = one.best.step;
  EXPECT_EQ(train(up_to_best, 1).steps, one.best.step);
  EXPECT_TRUE(checkpoint_contents(CheckpointFolder(folder("part")).of_step(one.best.step)) == best);
  const TrainingRun three = train(impatient(folder("three")), 3);
  EXPECT_EQ(three.losses, one.losses);
  EXPECT_EQ(three.test_losses, one.test_losses);
  EXPECT_EQ(three.state, one.state);
  EXPECT_TRUE(checkpoint_contents(CheckpointFolder(folder("three")).best()) == best);
}

// Wherever it is cut, also between an evaluation and the next step, it ends after the same step and keeps the
// same best checkpoint.
TEST_F(Checkpointing, AnEarlyEndIsTheSameAfterAResume) {
  const TrainingRun one = train(impatient(folder("one")), 1);
  const auto best = checkpoint_contents(CheckpointFolder(folder("one")).best());
  for (const int64_t cut : {one.best.step - 1, one.best.step, one.best.step + 2, one.steps}) {
    const std::string place = folder(std::to_string(cut));
    TrainingCase part = impatient(place);
    part.until = cut;
    train(part, 1 + int(cut % 2));
    if (cut == one.best.step) std::filesystem::remove_all(CheckpointFolder(place).best());
    part.until = 0;
    const TrainingRun rest = train(part, 2 - int(cut % 2));
    EXPECT_EQ(rest.steps, one.steps) << cut;
    EXPECT_EQ(rest.state, one.state) << cut;
    EXPECT_EQ(rest.best.step, one.best.step) << cut;
    EXPECT_EQ(rest.best.loss, one.best.loss) << cut;
    EXPECT_EQ(rest.ended_early, one.ended_early) << cut;
    EXPECT_TRUE(checkpoint_contents(CheckpointFolder(place).best()) == best) << cut;
  }
}

// A signal that one rank hears stops all of them after the same step, with everything saved.
TEST_F(Checkpointing, ASignalSavesAndStops) {
  TrainingCase c = two_epochs();
  c.epochs = 300;
  c.checkpoint = folder("run");
  const StopRequests signals;
  c.on_step = [](const StepReport& report) {
    if (report.step == 3) ::raise(SIGUSR1);
  };
  try {
    train(c, 2);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::stopped);
    EXPECT_NE(std::string(error.what()).find("stopped by SIGUSR1 after step"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("--resume auto"), std::string::npos) << error.what();
  }
  const auto there = CheckpointFolder(c.checkpoint).list();
  ASSERT_EQ(there.size(), 1u);
  const int64_t stopped_at = verify_checkpoint(there[0]).position.step;
  EXPECT_GE(stopped_at, 4);
  EXPECT_LT(stopped_at, 900);
}

TEST(StopRequests, EndWorkThatHasNothingToSave) {
  const StopRequests signals;
  StopRequests::work_begins();
  StopRequests::end_if_heard();
  ::raise(SIGINT);
  expect_error([] { StopRequests::end_if_heard(); }, {"stopped by SIGINT, and nothing was written"});
}

TEST_F(Checkpointing, ASignalWithoutCheckpointsSaysThatNothingIsSaved) {
  TrainingCase c = two_epochs();
  c.epochs = 300;
  const StopRequests signals;
  c.on_step = [](const StepReport& report) {
    if (report.step == 1) ::raise(SIGTERM);
  };
  try {
    train(c, 1);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(int(error.code()), 128 + SIGTERM);
    EXPECT_NE(std::string(error.what()).find("nothing was saved"), std::string::npos) << error.what();
  }
}

TEST_F(Checkpointing, ByTimeAsOftenAsItIsOver) {
  TrainingCase c = two_epochs();
  c.checkpoint = folder("run");
  c.epochs = 200;
  c.every_s = 0.01;                               // less than the ranks take to agree, so at every answer
  EXPECT_GE(train(c, 1).checkpoints.size(), 2u);  // the first step's answer, and the end
}

}  // namespace
}  // namespace antichain
