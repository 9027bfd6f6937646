// Groups of parameters have rates and decays of their own: each learns what it learns where all have these.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "framework/adamw.h"
#include "framework/averaged.h"
#include "framework/grouped.h"
#include "framework/muon.h"
#include "framework/sgd.h"
#include "framework/update_scratch.h"
#include "layers/cpu/backend.h"
#include "pipeline/schedule/policy.h"
#include "tests/data/temporary_folder.h"
#include "tests/pipeline/run/every_edge.h"
#include "tests/pipeline/run/training_run.h"

namespace antichain::test {
namespace {

TrainingRun train(const TrainingCase& c, int ranks = 1) {
  return train_on_threads(c, ranks, by_antichains, by_policy(Policy::one_f_one_b));
}

TrainingCase one_step(std::shared_ptr<const Optimiser> optimiser, float rate) {
  return {.steps = 1, .rate = rate, .optimiser = std::move(optimiser)};
}

// conv.weight has half the rate, fc.* another decay, and norm.* both.
std::shared_ptr<const Optimiser> in_groups(const std::shared_ptr<const Optimiser>& of,
                                           const std::shared_ptr<const Optimiser>& decays) {
  return std::make_shared<Grouped>(
      std::vector<ParameterGroup>{{of}, {of, 0.5f}, {decays}, {decays, 0.5f}},
      std::map<std::string, size_t, std::less<>>{
          {"conv.weight", 1}, {"fc.weight", 2}, {"fc.bias", 2}, {"norm.weight", 3}, {"norm.bias", 3}});
}

template <class Of, class Options>
void expect_groups_learn_what_all_would(const Options& options, Options other) {
  const auto of = std::make_shared<Of>(options), decays = std::make_shared<Of>(other);
  const TrainingRun groups = train(one_step(in_groups(of, decays), 0.25f));
  const TrainingRun all[] = {train(one_step(of, 0.25f)), train(one_step(of, 0.125f)),
                             train(one_step(decays, 0.25f)), train(one_step(decays, 0.125f))};
  for (const NamedTensor& tensor : groups.weights) {
    const int group = tensor.name == "conv.weight"                                 ? 1
                      : tensor.name.starts_with("fc.")                             ? 2
                      : tensor.name == "norm.weight" || tensor.name == "norm.bias" ? 3
                                                                                   : 0;
    EXPECT_TRUE(tensor.values == all[group].weights.find(tensor.name)->values) << tensor.name;
  }
  EXPECT_FALSE(groups.weights.find("fc.weight")->values == all[0].weights.find("fc.weight")->values);
}

TEST(Groups, LearnWhatAllWouldWithTheirSettings) {
  expect_groups_learn_what_all_would<Sgd>(SgdOptions{.weight_decay = 0.1f}, SgdOptions{.weight_decay = 0.5f});
  expect_groups_learn_what_all_would<AdamW>(AdamWOptions{.weight_decay = 0.1f},
                                            AdamWOptions{.weight_decay = 0.5f});
  expect_groups_learn_what_all_would<Muon>(MuonOptions{.adamw = {.weight_decay = 0.1f}},
                                           MuonOptions{.adamw = {.weight_decay = 0.5f}});
}

TEST(Groups, GiveTheSameBitsOnOtherRanksAfterACheckpoint) {
  const TemporaryFolder folder;
  const auto of = std::make_shared<AdamW>(AdamWOptions{});
  TrainingCase c{.steps = 2, .rate = 0.01f, .epochs = 2};
  c.optimiser = std::make_shared<Averaged>(in_groups(of, of), 0.9);
  const TrainingRun whole = train(c);
  c.checkpoint = folder.str() + "/run";
  std::filesystem::create_directory(c.checkpoint);
  c.until = 3;
  train(c, 3);
  c.until = 0;
  const TrainingRun rest = train(c, 2);
  EXPECT_EQ(rest.first_step, 3);
  EXPECT_EQ(rest.state, whole.state);
}

TEST(Groups, NeedTheScratchMemoryOfTheirOptimiser) {
  register_cpu_backend();
  const Graph graph = lower(every_edge({.microbatch = 2}), backend("cpu"));
  const auto muon = std::make_shared<Muon>(MuonOptions{});
  const Node& conv = graph[graph.find("conv")];
  EXPECT_GT(update_scratch_bytes(*muon, conv), 0);
  const Averaged both(in_groups(muon, muon), 0.9);
  EXPECT_EQ(update_scratch_bytes(both, conv), update_scratch_bytes(*muon, conv));
  EXPECT_EQ(slot_bytes(both, conv), slot_bytes(*muon, conv) + param_bytes(conv));
}

}  // namespace
}  // namespace antichain::test
