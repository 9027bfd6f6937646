// Promise 1: with a synchronous schedule the same bits come out whatever the cut, the schedule, and the
// number of ranks, and wherever a run was cut short and went on. Each case is trained on one rank, step by
// step; then on more, with plans of the planner and with cuts at random places inside blocks, by steps that
// overlap. Every loss, test loss, accuracy, weight, statistic and slot must be the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/muon.h"
#include "layers/cpu/dnnl.h"
#include "pipeline/planning/order_search.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/expect_same.h"
#include "tests/pipeline/run/training_run.h"
#include "tests/pipeline/schedule/fitting.h"
#include "tests/pipeline/train/checkpoint_contents.h"

namespace antichain::test {
namespace {

struct BitsCase {
  std::string name;
  TrainingCase c;
  bool every_schedule = true;
  friend void PrintTo(const BitsCase& b, std::ostream* out) { *out << b.name; }
};

// Two epochs of two steps, each evaluated on an uneven set. All policies take 12 micro-batches on 1 to 4
// ranks.
TrainingCase two_epochs() {
  return {.microbatch = 1, .microbatches = 12, .steps = 2, .rate = 0.01f, .epochs = 2, .every_steps = 1};
}

// The norms of the first gradients are above 0.5, so this clips.
TrainingCase adaptive(TrainingCase c) {
  c.clip_norm = 0.5;
  c.optimiser = std::make_shared<Averaged>(std::make_shared<AdamW>(AdamWOptions{}), 0.9);
  return c;
}

std::vector<BitsCase> cases_of_every_edge() {
  std::vector<BitsCase> all(7, {"Plain", two_epochs()});
  all[1].name = "Bf16", all[1].c.precision = Precision::bf16;
  all[2] = {"Adaptive", adaptive(two_epochs())};
  all[3] = {"AdaptiveBf16", adaptive(all[1].c)};
  all[4].name = "Augmented";
  all[4].c.augment = {.crop = Crop::reflect, .trivial = true, .erase = 0.5, .mixup = 0.4, .cutmix = 1};
  all[5] = {"FrozenBelow", adaptive(two_epochs())};
  all[5].c.freeze = {"stem*", "narrow.*", "wide.*", "norm.*"};
  all[6] = {"FrozenBetween", all[5].c};
  all[6].c.freeze = {"wide.weight", "norm.*", "narrow.bias", "aux.fc.*"};
  for (size_t i = 2; i < all.size(); ++i) all[i].every_schedule = false;
  return all;
}

std::vector<BitsCase> cases_of_shared_weights() {
  std::vector<BitsCase> all;
  for (const std::string model : {"repeated", "siamese", "unrolled", "tied"}) {
    TrainingCase c = two_epochs();
    c.model = model;
    all.push_back({model, c, model == "repeated" || model == "tied"});
    c.precision = Precision::bf16;
    all.push_back({model + "_adaptive_bf16", adaptive(c), false});
  }
  return all;
}

std::vector<BitsCase> cases_of_language_models() {
  std::vector<BitsCase> all;
  for (const std::string model : {"small_gpt", "small_llama"}) {
    TrainingCase c = adaptive(two_epochs());
    c.model = model;
    all.push_back({model, c});
    c.precision = Precision::bf16;
    all.push_back({model + "_bf16", c, false});
  }
  TrainingCase muon = adaptive(two_epochs());
  muon.model = "small_gpt";
  muon.optimiser = std::make_shared<Averaged>(std::make_shared<Muon>(MuonOptions{}), 0.9);
  all.push_back({"small_gpt_muon", muon, false});
  return all;
}

// ResNet-101 and ResNeXt-101 have more blocks of the same kind as ResNet-50 and ResNeXt-50.
std::vector<BitsCase> large_cases() {
  std::vector<BitsCase> all;
  const auto add = [&](const char* model, Precision precision, const char* suffix, bool every_schedule) {
    all.push_back({std::string(model) + suffix,
                   {.model = model,
                    .microbatch = 2,
                    .microbatches = every_schedule ? 12 : 4,
                    .steps = 2,
                    .precision = precision,
                    .rate = 0.01f},
                   every_schedule});
  };
  for (const char* model : {"resnet20", "squeezenet1_0"}) add(model, Precision::float32, "", true);
  for (const char* model :
       {"alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "inception_v3", "mobilenet_v2",
        "mobilenet_v3_large", "resnet18", "resnet32", "resnet50", "resnet56", "resnext50", "vgg16"})
    add(model, Precision::float32, "", false);
  for (const char* model : {"resnet20", "densenet121", "alexnet", "resnext50"})
    add(model, Precision::bf16, "_bf16", false);
  return all;
}

class SameBits : public ::testing::TestWithParam<BitsCase> {
 protected:
  void SetUp() override {
    if (GetParam().c.precision == Precision::bf16 && !cpu::has_bf16()) GTEST_SKIP() << "no AVX512_BF16";
  }
  // A run saves itself there where it has epochs.
  TrainingCase saved_in(const std::string& name) const {
    TrainingCase c = GetParam().c;
    if (c.epochs == 0) return c;
    c.checkpoint = folder_.str() + "/" + name;
    std::filesystem::create_directory(c.checkpoint);
    return c;
  }
  auto saved(const std::string& name) const {
    return checkpoint_contents(CheckpointFolder(folder_.str() + "/" + name).list().at(0));
  }
  TrainingRun on_one_rank() const {
    TrainingCase c = saved_in("one");
    c.between_ranks = Steps::apart;
    return train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b));
  }

  const TemporaryFolder folder_;
};

TEST_P(SameBits, WhateverTheCutAndTheSchedule) {
  const TrainingRun one = on_one_rank();
  ASSERT_NE(one.losses.at(0), one.losses.at(1));
  int runs = 0;
  const auto expect = [&](int ranks, const MakePlan& plan, const MakeSchedule& schedule,
                          const std::string& what) {
    const std::string name = std::to_string(++runs);
    const TrainingCase c = saved_in(name);
    expect_same(train_on_threads(c, ranks, plan, schedule), one, fmt::format("{} on {} ranks", what, ranks));
    if (c.epochs == 0) return;
    EXPECT_TRUE(saved(name) == saved("one")) << what;  // slots, too
  };
  expect(1, by_antichains, by_policy(Policy::one_f_one_b), "again");
  for (const int ranks : {2, 3, 4}) expect(ranks, by_antichains, by_policy(Policy::one_f_one_b), "1f1b");
  for (const Policy& policy : policies()) {
    if (!policy.trains || policy.asynchronous()) continue;
    if (!GetParam().every_schedule && policy.placement != Placement::one_stage) continue;
    for (const int ranks : GetParam().every_schedule ? std::vector{1, 2, 3, 4} : std::vector{3})
      expect(ranks, for_policy(policy, unsigned(runs)), by_policy(policy), std::string(policy.name));
  }
  const auto planned = [](const Profile& profile, const Plan& plan, int M) {
    return plan_order(profile, plan, {}, M, default_in_flight(profile, plan, {}, M)).schedule;
  };
  for (const int ranks : {2, 3, 4}) expect(ranks, at_random(unsigned(ranks)), planned, "a planned order");
}

// Also where a stage keeps less than its backward reads, and computes it again.
TEST_P(SameBits, WhateverIsComputedAgain) {
  const TrainingRun one = on_one_rank();
  unsigned seed = 0;
  const auto expect = [&](int ranks, const Policy& policy) {
    const std::string name = fmt::format("{}_{}_{}", policy.name, ranks, seed);
    const MakePlan plan = recomputing(for_policy(policy, seed), seed);
    const TrainingCase c = saved_in(name);
    expect_same(train_on_threads(c, ranks, plan, by_policy(policy)), one, name);
    ++seed;
    if (c.epochs == 0) return;
    EXPECT_TRUE(saved(name) == saved("one")) << name;
  };
  for (const Policy& policy : policies()) {
    if (!policy.trains || policy.asynchronous()) continue;
    if (!GetParam().every_schedule && policy.placement != Placement::one_stage) continue;
    for (const int ranks : GetParam().every_schedule ? std::vector{1, 3} : std::vector{2})
      expect(ranks, policy);
  }
}

// Cut after 1 step (within an epoch), 2 (between epochs, before the evaluation), 3, and 4 (nothing is left
// but an evaluation), as if the run had been killed.
TEST_P(SameBits, WhereverARunWasCutShortAndGoesOnWithOtherRanks) {
  if (GetParam().c.epochs == 0) GTEST_SKIP() << "it saves nothing";
  const TrainingRun one = on_one_rank();
  for (const auto& [cut, before, after] :
       {std::tuple(1, 1, 1), {1, 3, 2}, {2, 2, 1}, {2, 1, 3}, {3, 3, 2}, {4, 2, 2}}) {
    const std::string what = fmt::format("{} steps on {} ranks, then {}", cut, before, after);
    TrainingCase part = saved_in(what);
    part.until = cut;
    const TrainingRun first = train_on_threads(part, before, by_antichains, by_policy(policy("zb-h2")));
    part.until = 0;
    const TrainingRun rest = train_on_threads(part, after, by_antichains, by_policy(policy("zb-h1")));
    EXPECT_EQ(rest.first_step, cut) << what;
    std::vector<double> losses = first.losses;
    losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
    EXPECT_EQ(losses, one.losses) << what;
    EXPECT_EQ(rest.state, one.state) << what;
    EXPECT_EQ(rest.test_accuracy, one.test_accuracy) << what;
    EXPECT_EQ(rest.epoch_losses.back(), one.epoch_losses.back()) << what;
    EXPECT_TRUE(saved(what) == saved("one")) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEveryEdge, SameBits, ::testing::ValuesIn(cases_of_every_edge()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(OfSharedWeights, SameBits, ::testing::ValuesIn(cases_of_shared_weights()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(OfLanguageModels, SameBits, ::testing::ValuesIn(cases_of_language_models()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Large, SameBits, ::testing::ValuesIn(large_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(OneRank, EachAugmentationAndTheAuxiliaryLossChangeTheNumbers) {
  std::vector<TrainingCase> cases(7, {.microbatches = 3, .steps = 1, .rate = 0.01f});
  cases[1].augment.crop = Crop::reflect;
  cases[2].augment.trivial = true;
  cases[3].augment.erase = 1;
  cases[4].augment.mixup = 1;
  cases[5].augment.cutmix = 1;
  cases[6].aux = 0.4;
  std::set<std::string> states;
  for (const TrainingCase& c : cases)
    states.insert(train_on_threads(c, 1, by_antichains, by_policy(Policy::one_f_one_b)).state);
  EXPECT_EQ(states.size(), cases.size());
}

}  // namespace
}  // namespace antichain::test
